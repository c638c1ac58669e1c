// CancelFlag and StopToken: end a run of a graph before all of its nodes have run.
//
// The executor makes a StopToken for each run. Kernels and their loops reach it through RunContext.
// A stopped run stays stopped, so all readers of a result also see the stop. Code that sees the
// stop may therefore leave its result half done.
//
// Thread safety: all methods may be called from any thread.
#ifndef GRADFLOW_CORE_STOP_TOKEN_H_
#define GRADFLOW_CORE_STOP_TOKEN_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "gradflow/core/mutex.h"

#pragma GCC visibility push(default)
namespace gradflow {

// A flag that is raised once, and callbacks that are called when it is raised. Asynchronous kernels
// may outlive their run. If a std::shared_ptr owns the flag, a run with such kernels therefore
// keeps a reference to the flag.
class CancelFlag : public std::enable_shared_from_this<CancelFlag> {
 public:
  // Identifies a callback; 0 stands for none.
  using CallbackId = int64_t;

  CancelFlag() = default;
  CancelFlag(const CancelFlag&) = delete;
  CancelFlag& operator=(const CancelFlag&) = delete;

  // Raises the flag and calls the callbacks on this thread. A thread that sees the raised flag also
  // sees all writes that preceded Raise().
  void Raise() {
    raised_.store(true, std::memory_order_seq_cst);
    if (has_callbacks_.load(std::memory_order_seq_cst)) RunCallbacks();
  }
  // Raises the flag without calling the callbacks. A later Raise() calls them.
  void RaiseQuietly() { raised_.store(true, std::memory_order_seq_cst); }
  bool IsRaised() const { return raised_.load(std::memory_order_acquire); }

  // Calls `callback` when the flag is raised. Returns 0, without calling it, if the flag is already
  // raised. REQUIRES: `callback` does not throw
  CallbackId AddCallback(std::function<void()> callback);
  // Removes a callback. If another thread is calling it, waits until it has returned. Ignores 0 and
  // the ids of callbacks that have been called.
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
  // The callback in progress, or 0, and the thread that calls it.
  std::atomic<CallbackId> running_{0};
  std::atomic<std::thread::id> runner_{};
};

class StopToken {
 public:
  // The clock of deadlines.
  using Clock = std::chrono::steady_clock;
  using CallbackId = CancelFlag::CallbackId;

  // A limit on the work of kernels, which does not depend on time.
  struct MaxChecks {
    // The number of calls of Check(). A loop with several blocks calls it once per block.
    int64_t count;
  };

  // Stops at Stop(), at `deadline`, and when one of the flags is raised. The flags are borrowed and
  // may be null.
  explicit StopToken(const CancelFlag* cancelled = nullptr, const CancelFlag* closed = nullptr,
                     Clock::time_point deadline = Clock::time_point::max())
      : cancelled_(cancelled != nullptr ? cancelled : &stopped_),
        closed_(closed != nullptr ? closed : &stopped_),
        has_limit_(deadline != Clock::time_point::max()),
        deadline_(deadline) {}
  // Stops at the call of Check() that follows `max_checks` calls, instead of at a deadline.
  StopToken(const CancelFlag* cancelled, const CancelFlag* closed, MaxChecks max_checks)
      : cancelled_(cancelled != nullptr ? cancelled : &stopped_),
        closed_(closed != nullptr ? closed : &stopped_),
        has_limit_(true),
        deadline_(Clock::time_point::max()),
        counts_checks_(true),
        checks_left_(max_checks.count) {}
  StopToken(const StopToken&) = delete;
  StopToken& operator=(const StopToken&) = delete;

  // Stops the run. A thread that sees the stop also sees all writes that preceded Stop().
  void Stop() { stopped_.Raise(); }
  // Returns true if the run must end. Ignores the deadline until Check() notices it.
  bool IsStopped() const {
    return stopped_.IsRaised() || cancelled_->IsRaised() || closed_->IsRaised();
  }
  // Returns true if the run must end. Calls no callbacks, because the caller may hold locks that
  // they take; the executor calls Stop() when it notices the stop. Reads the clock only if there is
  // a deadline, because this takes longer than the rest.
  bool Check() {
    if (stopped_.IsRaised()) return true;
    if (!cancelled_->IsRaised() && !closed_->IsRaised() && !(has_limit_ && IsLimitReached())) {
      return false;
    }
    stopped_.RaiseQuietly();
    return true;
  }

  // Calls `callback` when the run stops, but not after the run is over. For kernels that wait for
  // something outside of the run. Returns the same as CancelFlag::AddCallback(). If a flag or the
  // deadline ends the run, `callback` is called when the next node ends. If no node is running
  // except asynchronous ones, it is called at once.
  CallbackId AddCallback(std::function<void()> callback) {
    return stopped_.AddCallback(std::move(callback));
  }
  void RemoveCallback(CallbackId id) { stopped_.RemoveCallback(id); }
  // For the executor, when the run is over. Breaks cycles: a callback may own the owner of this
  // token.
  void DropCallbacks() { stopped_.DropCallbacks(); }

  // The conditions that may have stopped the run, other than Stop().
  bool cancelled() const { return cancelled_ != &stopped_ && cancelled_->IsRaised(); }
  bool closed() const { return closed_ != &stopped_ && closed_->IsRaised(); }
  Clock::time_point deadline() const { return deadline_; }
  // The number of calls of Check() that are left; negative after further calls.
  int64_t checks_left() const { return checks_left_.load(std::memory_order_relaxed); }

 private:
  bool IsLimitReached() {
    if (!counts_checks_) return Clock::now() > deadline_;
    return checks_left_.fetch_sub(1, std::memory_order_relaxed) <= 0;
  }

  CancelFlag stopped_;
  // &stopped_ if there is no such flag.
  const CancelFlag* const cancelled_;
  const CancelFlag* const closed_;
  const bool has_limit_;
  const Clock::time_point deadline_;
  const bool counts_checks_ = false;
  std::atomic<int64_t> checks_left_{0};
};

// Returns true if the run must end. A null `stop` never ends it.
inline bool IsStopped(StopToken* stop) { return stop != nullptr && stop->Check(); }

// The error of code that gave up because the run must end.
inline absl::Status StoppedError() { return absl::CancelledError("the run was stopped"); }

// Returns StoppedError() if the run must end. A null `stop` never ends it.
inline absl::Status CheckStop(StopToken* stop) {
  return IsStopped(stop) ? StoppedError() : absl::OkStatus();
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_STOP_TOKEN_H_
