#include "gradflow/runtime/executor/ready_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gradflow/core/stop_token.h"

namespace gradflow {
namespace {

// A number that threads set, and for which other threads wait.
class Signal {
 public:
  void Set(int value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_ = value;
    changed_.notify_all();
  }
  void WaitFor(int value) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return value_ >= value; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int value_ = 0;
};

class CountedLatch final : public ReadyQueue::Arena::Latch {
 public:
  void Close() override {
    open_.Set(0);
    closes_.Set(++num_closes_);
  }
  bool Open() override {
    open_.Set(1);
    return true;
  }
  void Wait() override {
    open_.WaitFor(1);
    if (on_first_wake_) std::exchange(on_first_wake_, nullptr)();
  }
  // The number of calls of Close().
  Signal& closes() { return closes_; }
  // Sets what the first Wait() does before it returns.
  void set_on_first_wake(std::function<void()> fn) { on_first_wake_ = std::move(fn); }

 private:
  Signal open_;
  Signal closes_;
  int num_closes_ = 0;
  std::function<void()> on_first_wake_;
};

// Stores the helpers that the queue requests, until the test runs them. Without `has_memory`, the
// caller has no latch.
class ListedHelpers : public ReadyQueue::Arena {
 public:
  explicit ListedHelpers(bool has_memory) : has_memory_(has_memory) {}
  bool Spawn(void (*help)(void*), void* gate) override {
    helpers_.emplace_back(help, gate);
    return true;
  }
  void Isolate(absl::FunctionRef<void()> fn) override { fn(); }
  Latch* CallerLatch() override { return has_memory_ ? &latch_ : nullptr; }
  CountedLatch& latch() { return latch_; }
  size_t size() const { return helpers_.size(); }
  void Run(size_t i) const { helpers_[i].first(helpers_[i].second); }

 private:
  const bool has_memory_;
  CountedLatch latch_;
  std::vector<std::pair<void (*)(void*), void*>> helpers_;
};

class ReadyQueueTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(HasMemoryForLatches, ReadyQueueTest, ::testing::Bool());

// A waiting thread takes one piece of work. Work that is added before the thread wakes needs
// further helpers.
TEST_P(ReadyQueueTest, SpawnsAHelperForWorkThatTheWokenThreadDoesNotTake) {
  constexpr int kNodes = 100000;
  std::vector<int32_t> links(kNodes, kNoNode);
  ReadyQueue::Source source(links.data());
  ListedHelpers helpers(GetParam());
  Signal helpers_at_work;
  Signal taken;
  // Nodes below this number may end.
  Signal ended;
  int rounds = 0;
  ReadyQueue* queue = nullptr;
  const auto help = [&] {
    helpers_at_work.Set(1);
    // If the other thread waits, it takes the first node, and no helper is requested. The second
    // node then needs a helper; this counts as a round. With a latch, each node requests a helper,
    // because the waiting thread may be running a block of a loop.
    for (int node = 1; node < kNodes - 1 && rounds < 50; ++node) {
      taken.WaitFor(node);
      size_t before = helpers.size();
      queue->Push(&source, node);
      if (GetParam()) {
        ++rounds;
        EXPECT_EQ(helpers.size(), before + 1);
      } else if (helpers.size() == before) {
        ++rounds;
        before = helpers.size();
        queue->Push(&source, ++node);
        EXPECT_EQ(helpers.size(), before + 1);
      }
      ended.Set(node + 1);
    }
    ended.Set(kNodes);
    ReadyQueue::Work work;
    while (queue->Take(&work)) {
    }
  };
  ReadyQueue made(2 * kNodes, &helpers, help);
  queue = &made;
  queue->Push(&source, 0);
  ASSERT_EQ(helpers.size(), 1);
  std::thread helper([&] { helpers.Run(0); });
  helpers_at_work.WaitFor(1);
  StopToken stop;
  ReadyQueue::Work work;
  int nodes = 0;
  ended.Set(1);
  while (queue->Take(&work) || queue->WaitAndTake(&stop, &work)) {
    taken.Set(++nodes);
    ended.WaitFor(work.node + 1);
  }
  helper.join();
  EXPECT_FALSE(queue->Close());
  // Helpers that arrive after the end return at once.
  for (size_t i = 1; i < helpers.size(); ++i) helpers.Run(i);
  EXPECT_GT(rounds, 0);
}

// A thread that waits at a latch is woken for a piece of work, and a helper is spawned for the same
// work.
TEST(ReadyQueue, AdmitsNoHelperWhenAllAllowedThreadsAreAtWork) {
  std::vector<int32_t> links(4, kNoNode);
  ReadyQueue::Source source(links.data());
  ListedHelpers helpers(/*has_memory=*/true);
  Signal at_work;
  Signal taken;
  int admitted = 0;
  ReadyQueue* queue = nullptr;
  const auto help = [&] {
    ReadyQueue::Work work;
    if (++admitted == 1 && queue->Take(&work)) {
      at_work.Set(1);
      helpers.latch().closes().WaitFor(1);
      queue->Push(&source, 2);
      EXPECT_EQ(helpers.size(), 2);
      taken.WaitFor(2);
      queue->Push(&source, 3);
      EXPECT_EQ(helpers.size(), 2);
      helpers.Run(1);
    }
    while (queue->Take(&work)) {
    }
  };
  ReadyQueue made(2, &helpers, help);
  queue = &made;
  queue->Push(&source, 0);
  queue->Push(&source, 1);
  ASSERT_EQ(helpers.size(), 1);
  StopToken stop;
  ReadyQueue::Work work;
  ASSERT_TRUE(queue->Take(&work));
  std::thread helper([&] { helpers.Run(0); });
  at_work.WaitFor(1);
  EXPECT_FALSE(queue->Take(&work));
  EXPECT_TRUE(queue->WaitAndTake(&stop, &work));
  EXPECT_EQ(work.node, 2);
  taken.Set(2);
  helper.join();
  EXPECT_FALSE(queue->Take(&work));
  EXPECT_FALSE(queue->WaitAndTake(&stop, &work));
  EXPECT_EQ(admitted, 1);
  EXPECT_FALSE(queue->Close());
}

// A helper may begin before the woken thread continues.
TEST(ReadyQueue, WokenThreadWaitsAgainWhenAllAllowedThreadsAreAtWork) {
  std::vector<int32_t> links(4, kNoNode);
  ReadyQueue::Source source(links.data());
  ListedHelpers helpers(/*has_memory=*/true);
  Signal at_work;
  Signal spawned;
  Signal pushed;
  std::atomic<int> admitted{0};
  ReadyQueue* queue = nullptr;
  const auto help = [&] {
    const bool first = ++admitted == 1;
    ReadyQueue::Work work;
    EXPECT_TRUE(queue->Take(&work));
    if (first) {
      at_work.Set(1);
      helpers.latch().closes().WaitFor(1);
      queue->Push(&source, 2);
      spawned.Set(1);
    } else {
      EXPECT_EQ(work.node, 2);
      queue->Push(&source, 3);
      pushed.Set(1);
    }
    // The woken thread waits again.
    helpers.latch().closes().WaitFor(2);
    while (queue->Take(&work)) {
    }
  };
  ReadyQueue made(2, &helpers, help);
  queue = &made;
  queue->Push(&source, 0);
  queue->Push(&source, 1);
  StopToken stop;
  ReadyQueue::Work work;
  ASSERT_TRUE(queue->Take(&work));
  std::thread first([&] { helpers.Run(0); });
  std::thread second;
  helpers.latch().set_on_first_wake([&] {
    spawned.WaitFor(1);
    second = std::thread([&] { helpers.Run(1); });
    pushed.WaitFor(1);
  });
  at_work.WaitFor(1);
  EXPECT_FALSE(queue->Take(&work));
  const bool took = queue->WaitAndTake(&stop, &work);
  EXPECT_FALSE(took);
  // If the check has failed, releases the helpers, which wait for a second Close(), so that the
  // test ends.
  helpers.latch().closes().Set(2);
  while (took && (queue->Take(&work) || queue->WaitAndTake(&stop, &work))) {
  }
  first.join();
  second.join();
  EXPECT_EQ(admitted, 2);
  EXPECT_FALSE(queue->Close());
}

}  // namespace
}  // namespace gradflow
