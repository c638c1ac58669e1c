#include "gradflow/core/parallel.h"

#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gradflow/core/stop_token.h"

namespace gradflow {
namespace {

using Block = std::pair<int64_t, int64_t>;

std::vector<Block> BlocksOf(int64_t total, int64_t block_size, int threads) {
  std::vector<Block> blocks;
  std::mutex mutex;
  tbb::task_arena(threads).execute([&] {
    ParallelFor(RunContext(), total, block_size, [&](int64_t begin, int64_t end) {
      const std::lock_guard<std::mutex> lock(mutex);
      blocks.emplace_back(begin, end);
    });
  });
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

TEST(ParallelFor, CoversTheRangeInBlocksThatDoNotDependOnThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    EXPECT_EQ(BlocksOf(10, 4, threads), (std::vector<Block>{{0, 4}, {4, 8}, {8, 10}}));
    EXPECT_EQ(BlocksOf(8, 4, threads), (std::vector<Block>{{0, 4}, {4, 8}}));
    EXPECT_EQ(BlocksOf(3, 100, threads), (std::vector<Block>{{0, 3}}));
    EXPECT_TRUE(BlocksOf(0, 4, threads).empty());
    EXPECT_TRUE(BlocksOf(-1, 4, threads).empty());
    EXPECT_EQ(BlocksOf(100000, 7, threads).size(), 14286u);
  }
}

TEST(ParallelFor, TakesRangesBeyond32Bits) {
  constexpr int64_t kTotal = int64_t{5} << 32;
  constexpr int64_t kBlock = int64_t{3} << 31;
  EXPECT_EQ(
      BlocksOf(kTotal, kBlock, 2),
      (std::vector<Block>{
          {0, kBlock}, {kBlock, 2 * kBlock}, {2 * kBlock, 3 * kBlock}, {3 * kBlock, kTotal}}));
  EXPECT_EQ(BlocksOf(INT64_MAX, INT64_MAX - 1, 2),
            (std::vector<Block>{{0, INT64_MAX - 1}, {INT64_MAX - 1, INT64_MAX}}));
}

TEST(ParallelFor, RunsInOrderOnASingleThread) {
  std::vector<int64_t> begins;
  tbb::task_arena(1).execute([&] {
    ParallelFor(RunContext(), 5, 2, [&](int64_t begin, int64_t) { begins.push_back(begin); });
  });
  EXPECT_EQ(begins, (std::vector<int64_t>{0, 2, 4}));
}

TEST(ParallelFor, SupportsNestedLoops) {
  std::atomic<int64_t> sum = 0;
  tbb::task_arena(4).execute([&] {
    ParallelFor(RunContext(), 100, 1, [&](int64_t outer, int64_t) {
      ParallelFor(RunContext(), 100, 10,
                  [&](int64_t begin, int64_t end) { sum += outer * (end - begin); });
    });
  });
  EXPECT_EQ(sum, 100 * 4950);
}

RunContext RunOf(StopToken* stop, int max_loop_threads = 0, LoopArena* arena = nullptr) {
  RunContext run;
  run.stop = stop;
  run.max_loop_threads = max_loop_threads;
  run.arena = arena;
  return run;
}

// Runs a loop of `blocks` blocks in a new arena.
void Loop(int threads, const RunContext& run, int64_t blocks,
          absl::FunctionRef<void(int64_t block)> fn) {
  tbb::task_arena(threads).execute(
      [&] { ParallelFor(run, blocks, 1, [&](int64_t begin, int64_t) { fn(begin); }); });
}

TEST(ParallelFor, SkipsBlocksOnceTheRunIsStopped) {
  for (const int threads : {1, 2, 8}) {
    StopToken stop;
    std::atomic<int64_t> blocks = 0;
    Loop(threads, RunOf(&stop), int64_t{1} << 40, [&](int64_t) {
      if (++blocks == 1000) stop.Stop();
    });
    EXPECT_GE(blocks, 1000);
    // Later loops are also skipped, even loops of one block.
    const int64_t before = blocks;
    Loop(threads, RunOf(&stop), 1, [&](int64_t) { ++blocks; });
    Loop(threads, RunOf(&stop), 10, [&](int64_t) { ++blocks; });
    EXPECT_EQ(blocks, before);
  }
}

TEST(ParallelFor, StopsInnerLoopsAtADeadline) {
  for (const int threads : {1, 2, 8}) {
    StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(1));
    Loop(threads, RunOf(&stop), 2,
         [&](int64_t) { ParallelFor(RunOf(&stop), INT64_MAX, 1, [](int64_t, int64_t) {}); });
    EXPECT_TRUE(stop.IsStopped());
  }
}

TEST(ParallelFor, RespectsTheThreadLimit) {
  for (const int max_threads : {1, 2, 3}) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::vector<int> visits(5000);
    const RunContext run = RunOf(nullptr, max_threads);
    Loop(8, run, 100, [&](int64_t outer) {
      ParallelFor(run, 50, 1, [&](int64_t inner, int64_t) {
        ++visits[50 * outer + inner];
        const std::lock_guard<std::mutex> lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
    });
    EXPECT_LE(threads.size(), static_cast<size_t>(max_threads));
    EXPECT_EQ(visits, std::vector<int>(5000, 1));
  }
}

// The test allows more threads than processors, which oneTBB does not by default.
TEST(ParallelFor, NestedLoopsUseNoMoreThreadsThanTheOuterOne) {
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, 8);
  for (const int max_threads : {2, 3}) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::atomic<int> at_once = 0;
    std::atomic<int> most = 0;
    const RunContext run = RunOf(nullptr, max_threads);
    Loop(8, run, 4, [&](int64_t) {
      ParallelFor(run, 8, 1, [&](int64_t, int64_t) {
        const int now = ++at_once;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        // Waits, so that other threads could take blocks.
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --at_once;
        const std::lock_guard<std::mutex> lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
    });
    EXPECT_LE(most, max_threads);
    EXPECT_LE(threads.size(), static_cast<size_t>(max_threads));
  }
}

// An arena with four threads, or an arena without free threads.
class TestArena final : public LoopArena {
 public:
  explicit TestArena(bool has_room) : has_room_(has_room) {}
  bool Execute(absl::FunctionRef<void()> fn) override {
    ++calls_;
    const auto enter = [&] {
      const ScopedArenaMembership member(this);
      fn();
    };
    if (has_room_) arena_.execute(enter);
    return has_room_;
  }
  int calls() const { return calls_; }

 private:
  const bool has_room_;
  int calls_ = 0;
  tbb::task_arena arena_{4};
};

TEST(ParallelFor, EntersAnArenaForLoopsOfSeveralBlocks) {
  TestArena arena(/*has_room=*/true);
  const RunContext run = RunOf(nullptr, 0, &arena);
  std::atomic<int> concurrency = 0;
  ParallelFor(run, 10, 10, [&](int64_t, int64_t) {});
  EXPECT_EQ(arena.calls(), 0);
  ParallelFor(run, 10, 1, [&](int64_t, int64_t) {
    concurrency = tbb::this_task_arena::max_concurrency();
    // The thread is already in the arena.
    ParallelFor(run, 10, 1, [](int64_t, int64_t) {});
  });
  EXPECT_EQ(arena.calls(), 1);
  EXPECT_EQ(concurrency, 4);
}

TEST(ParallelFor, RunsInOrderOnTheCallingThreadIfItsArenaHasNoRoom) {
  TestArena arena(/*has_room=*/false);
  const RunContext run = RunOf(nullptr, 0, &arena);
  std::vector<int64_t> begins;
  ParallelFor(run, 5, 2, [&](int64_t begin, int64_t) { begins.push_back(begin); });
  EXPECT_EQ(begins, (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(arena.calls(), 1);
}

TEST(RunContext, ShouldStopReportsACancelledRun) {
  EXPECT_FALSE(RunContext().ShouldStop());
  CancelFlag cancelled;
  StopToken stop(&cancelled);
  const RunContext run = RunOf(&stop);
  EXPECT_FALSE(run.ShouldStop());
  cancelled.Raise();
  EXPECT_TRUE(SerialLoops(run).ShouldStop());
  EXPECT_TRUE(stop.cancelled());
  EXPECT_FALSE(stop.closed());
}

TEST(BlockSizeForCost, FallsAsTheCostRises) {
  EXPECT_GT(BlockSizeForCost(0.1), BlockSizeForCost(1));
  EXPECT_GT(BlockSizeForCost(1), BlockSizeForCost(100));
  EXPECT_EQ(BlockSizeForCost(1e12), 1);
  EXPECT_GE(BlockSizeForCost(0), 1);
}

}  // namespace
}  // namespace gradflow
