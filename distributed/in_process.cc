#include "gradflow/distributed/in_process.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "gradflow/core/mutex.h"
#include "gradflow/distributed/exchange.h"
#include "gradflow/distributed/round_table.h"

namespace gradflow {
namespace distributed {
namespace {

using Clock = std::chrono::steady_clock;

// The state that the ranks share.
//
// The calls of a round that has started or failed belong to the thread that saw the event. No
// callback runs while the mutex is held.
class InProcessHub {
 public:
  InProcessHub(int size, const InProcessOptions& options)
      : size_(size), options_(options), table_(size) {}

  int size() const { return size_; }

  // Ends WaitForTimeouts().
  void Stop() {
    MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.Notify();
  }

  void Start(int rank, Collectives::CallId id, CollectiveCall call, Collectives::Done done) {
    if (absl::Status status = CheckCall(call, size_); !status.ok()) {
      done(std::move(status));
      return;
    }
    if (call.timeout.count() == 0) call.timeout = options_.timeout;
    const CallHeader header = HeaderOf(call);
    Work work;
    {
      MutexLock lock(&mutex_);
      const RoundTable::Time before = table_.NextDeadline();
      pending_.emplace(std::make_pair(rank, id), Pending{std::move(call), std::move(done)});
      Take(table_.Join(rank, id, header, Clock::now()), &work);
      if (table_.NextDeadline() < before) changed_.Notify();
    }
    Do(&work);
  }

  void Cancel(int rank, Collectives::CallId id) {
    Work work;
    {
      MutexLock lock(&mutex_);
      RoundTable::Events events;
      // A round that has started is about to end.
      table_.Cancel(rank, id, Clock::now(), &events);
      Take(std::move(events), &work);
    }
    Do(&work);
  }

  void Lose(int rank) {
    Work work;
    {
      MutexLock lock(&mutex_);
      Take(table_.Lose(rank, "its Collectives were destroyed", Clock::now()), &work);
    }
    Do(&work);
  }

  // Fails the rounds whose time is over, until Stop().
  void WaitForTimeouts() {
    while (true) {
      Work work;
      {
        MutexLock lock(&mutex_);
        if (stopped_) return;
        const RoundTable::Time next = table_.NextDeadline();
        if (next > Clock::now()) {
          if (next == RoundTable::Time::max()) {
            changed_.Wait(&mutex_);
          } else {
            changed_.WaitUntil(&mutex_, next);
          }
          continue;
        }
        Take(table_.Expire(Clock::now()), &work);
      }
      Do(&work);
    }
  }

 private:
  struct Pending {
    CollectiveCall call;
    Collectives::Done done;
  };
  // The calls of an event.
  struct Ended {
    absl::Status status;
    int64_t round;
    std::vector<Pending> calls;
  };
  using Work = std::vector<Ended>;

  void Take(RoundTable::Events events, Work* work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (RoundTable::Event& event : events) {
      Ended& ended = work->emplace_back();
      ended.status = std::move(event.status);
      ended.round = event.round;
      for (const RoundTable::Member& member : event.members) {
        const auto found = pending_.find({member.rank, member.call});
        ended.calls.push_back(std::move(found->second));
        pending_.erase(found);
      }
    }
  }

  void Do(Work* work) {
    for (Ended& ended : *work) {
      if (ended.status.ok()) {
        std::vector<CollectiveCall*> calls;
        calls.reserve(ended.calls.size());
        for (Pending& pending : ended.calls) calls.push_back(&pending.call);
        Exchange(calls);
        MutexLock lock(&mutex_);
        table_.Finish(ended.round, absl::OkStatus());
      }
      for (Pending& pending : ended.calls) {
        // Kernels may write to the tensors afterwards.
        pending.call = CollectiveCall();
        pending.done(ended.status);
      }
    }
  }

  const int size_;
  const InProcessOptions options_;
  Mutex mutex_;
  // The next deadline may have changed.
  CondVar changed_;
  RoundTable table_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<int, Collectives::CallId>, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// Owns the thread that waits for timeouts. The last rank to be destroyed destroys it.
class InProcessHubOwner {
 public:
  explicit InProcessHubOwner(std::shared_ptr<InProcessHub> hub)
      : hub_(std::move(hub)), timer_([hub = hub_] { hub->WaitForTimeouts(); }) {}
  ~InProcessHubOwner() {
    hub_->Stop();
    // A callback of the thread may have dropped the last rank.
    if (timer_.get_id() == std::this_thread::get_id()) {
      timer_.detach();
    } else {
      timer_.join();
    }
  }
  InProcessHubOwner(const InProcessHubOwner&) = delete;
  InProcessHubOwner& operator=(const InProcessHubOwner&) = delete;

  InProcessHub& hub() const { return *hub_; }

 private:
  const std::shared_ptr<InProcessHub> hub_;
  std::thread timer_;
};

class InProcessRank final : public Collectives {
 public:
  InProcessRank(int rank, std::shared_ptr<InProcessHubOwner> owner)
      : rank_(rank), owner_(std::move(owner)) {}
  ~InProcessRank() override { owner_->hub().Lose(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return owner_->hub().size(); }
  CallId NewCallId() override { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  void Start(CallId id, CollectiveCall call, Done done) override {
    // The last call may destroy this object.
    const std::shared_ptr<InProcessHubOwner> owner = owner_;
    owner->hub().Start(rank_, id, std::move(call), std::move(done));
  }
  void Cancel(CallId id) override {
    const std::shared_ptr<InProcessHubOwner> owner = owner_;
    owner->hub().Cancel(rank_, id);
  }

 private:
  const int rank_;
  const std::shared_ptr<InProcessHubOwner> owner_;
  std::atomic<CallId> next_id_{1};
};

}  // namespace
}  // namespace distributed

std::vector<std::shared_ptr<Collectives>> InProcessCollectives(int size,
                                                               const InProcessOptions& options) {
  const auto owner = std::make_shared<distributed::InProcessHubOwner>(
      std::make_shared<distributed::InProcessHub>(size, options));
  std::vector<std::shared_ptr<Collectives>> ranks;
  ranks.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_shared<distributed::InProcessRank>(rank, owner));
  }
  return ranks;
}

}  // namespace gradflow
