// CancelFlag and RunStop: what ends a run of a graph before its nodes are done, and how kernels
// notice.
//
// The executor makes a RunStop for each run; kernels and their loops reach it through RunContext.
// A run that has stopped stays stopped: whoever sees that a run is to end may leave its work half
// done, since everything that would read it sees the same.
//
// Thread safety: all of it may be used from any thread.
#ifndef GRADFLOW_CORE_RUN_STOP_H_
#define GRADFLOW_CORE_RUN_STOP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "gradflow/core/mutex.h"

#pragma GCC visibility push(default)
namespace gradflow {

// A flag that is raised once, and callbacks that run then.
class CancelFlag {
 public:
  // Names a callback; 0 names none.
  using CallbackId = int64_t;

  CancelFlag() = default;
  CancelFlag(const CancelFlag&) = delete;
  CancelFlag& operator=(const CancelFlag&) = delete;

  // Raises the flag and calls the callbacks, on this thread. What went before is seen by whoever
  // sees the flag raised.
  void Raise() {
    raised_.store(true, std::memory_order_seq_cst);
    if (has_callbacks_.load(std::memory_order_seq_cst)) RunCallbacks();
  }
  bool IsRaised() const { return raised_.load(std::memory_order_acquire); }

  // Calls `callback` when the flag is raised, which must not throw. Returns 0, and does not call
  // it, if the flag is raised already.
  CallbackId AddCallback(std::function<void()> callback);
  // Returns when the callback has been called to its end or will not be called; at once if this
  // thread is calling it. Ids of callbacks that have been called, and 0, are ignored.
  void RemoveCallback(CallbackId id);
  // Drops the callbacks that have not been called.
  void DropCallbacks();

 private:
  void RunCallbacks();

  std::atomic<bool> raised_{false};
  // True if callbacks have ever been added.
  std::atomic<bool> has_callbacks_{false};
  Mutex mutex_;
  std::map<CallbackId, std::function<void()>> callbacks_ ABSL_GUARDED_BY(mutex_);
  CallbackId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  // The callback that is being called, 0 for none, and the thread that calls it.
  std::atomic<CallbackId> running_{0};
  std::atomic<std::thread::id> runner_{};
};

class RunStop {
 public:
  // Deadlines are points of this clock.
  using Clock = std::chrono::steady_clock;
  using CallbackId = CancelFlag::CallbackId;

  // Stops at Stop(), at `deadline`, and when one of the flags is raised. The flags are borrowed and
  // may be null.
  explicit RunStop(const CancelFlag* cancelled = nullptr, const CancelFlag* closed = nullptr,
                   Clock::time_point deadline = Clock::time_point::max())
      : cancelled_(cancelled != nullptr ? cancelled : &stopped_),
        closed_(closed != nullptr ? closed : &stopped_),
        has_deadline_(deadline != Clock::time_point::max()),
        deadline_(deadline) {}
  RunStop(const RunStop&) = delete;
  RunStop& operator=(const RunStop&) = delete;

  // Stops the run. Whoever sees it stopped sees what went before.
  void Stop() { stopped_.Raise(); }
  // Reports whether the run is to end, without a look at the clock.
  bool IsStopped() const {
    return stopped_.IsRaised() || cancelled_->IsRaised() || closed_->IsRaised();
  }
  // Reports whether the run is to end. Stops it, so that the callbacks run, if a flag or the
  // deadline ends it. With a deadline, looks at the clock, which takes some 25 ns.
  bool Check() {
    if (stopped_.IsRaised()) return true;
    if (!cancelled_->IsRaised() && !closed_->IsRaised() &&
        !(has_deadline_ && Clock::now() > deadline_)) {
      return false;
    }
    Stop();
    return true;
  }

  // Calls `callback` when the run stops, for kernels that wait for something outside of the run.
  // Not called any more when the run is over. As CancelFlag's; a run that a flag or the deadline
  // ends calls it as soon as one of its threads notices, and one that only waits notices at once.
  CallbackId AddCallback(std::function<void()> callback) {
    return stopped_.AddCallback(std::move(callback));
  }
  void RemoveCallback(CallbackId id) { stopped_.RemoveCallback(id); }
  // For the executor, when the run is over: a callback may hold what holds this.
  void DropCallbacks() { stopped_.DropCallbacks(); }

  // Why the run stops, unless by Stop().
  bool cancelled() const { return cancelled_ != &stopped_ && cancelled_->IsRaised(); }
  bool closed() const { return closed_ != &stopped_ && closed_->IsRaised(); }
  Clock::time_point deadline() const { return deadline_; }

 private:
  CancelFlag stopped_;
  // &stopped_ if there is none.
  const CancelFlag* const cancelled_;
  const CancelFlag* const closed_;
  const bool has_deadline_;
  const Clock::time_point deadline_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RUN_STOP_H_
