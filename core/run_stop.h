// RunStop: what ends a run of a graph before its nodes are done, and how long loops notice.
//
// The executor makes one for each run and hands it to the threads that work for the run (see
// core/parallel.h). What has stopped stays stopped: who sees that a run is to end may leave its
// work half done, since all that would read it sees the same.
//
// Thread safety: all of it may be used from any thread.
#ifndef GRADFLOW_CORE_RUN_STOP_H_
#define GRADFLOW_CORE_RUN_STOP_H_

#include <atomic>
#include <chrono>

#pragma GCC visibility push(default)
namespace gradflow {

class RunStop {
 public:
  // What deadlines are told in.
  using Clock = std::chrono::steady_clock;

  // Stops at Stop(), at `deadline`, and when one of the flags is true, which then must not become
  // false again. The flags are borrowed and may be null.
  explicit RunStop(const std::atomic<bool>* cancelled = nullptr,
                   const std::atomic<bool>* closed = nullptr,
                   Clock::time_point deadline = Clock::time_point::max())
      : cancelled_(cancelled != nullptr ? cancelled : &stopped_),
        closed_(closed != nullptr ? closed : &stopped_),
        has_deadline_(deadline != Clock::time_point::max()),
        deadline_(deadline) {}
  RunStop(const RunStop&) = delete;
  RunStop& operator=(const RunStop&) = delete;

  // Who sees the run stopped sees what went before.
  void Stop() { stopped_.store(true, std::memory_order_release); }
  // Whether the run is to end. Does not look at the clock, only at what Check() has found.
  bool IsStopped() const {
    return stopped_.load(std::memory_order_acquire) ||
           cancelled_->load(std::memory_order_relaxed) || closed_->load(std::memory_order_relaxed);
  }
  // The same with a look at the clock if there is a deadline, which takes some 25 ns.
  bool Check() {
    if (has_deadline_ && !IsStopped() && Clock::now() > deadline_) Stop();
    return IsStopped();
  }

  // Why, as far as it is not Stop().
  bool cancelled() const { return cancelled_ != &stopped_ && cancelled_->load(); }
  bool closed() const { return closed_ != &stopped_ && closed_->load(); }

 private:
  std::atomic<bool> stopped_{false};
  // &stopped_ if there is none.
  const std::atomic<bool>* const cancelled_;
  const std::atomic<bool>* const closed_;
  const bool has_deadline_;
  const Clock::time_point deadline_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RUN_STOP_H_
