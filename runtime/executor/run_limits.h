// RunLimits: conditions that end a run early. Not for users.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_RUN_LIMITS_H_
#define GRADFLOW_RUNTIME_EXECUTOR_RUN_LIMITS_H_

#include <atomic>
#include <chrono>

#include "absl/status/status.h"
#include "gradflow/core/run_stop.h"

namespace gradflow {

// Conditions that end a run early. Checked before each node and, by kernels, before each block of a
// loop. The flags also end the making of the run's plan. The deadline does not: a run whose plan
// takes longer to make than the timeout would never complete, however often it is tried.
struct RunLimits {
  // Sets the timeout, and the deadline to that time from now. Zero means no limit.
  void SetTimeout(std::chrono::milliseconds limit);

  // Only for error messages.
  std::chrono::milliseconds timeout{0};
  // The time after which the run is DEADLINE_EXCEEDED.
  RunStop::Clock::time_point deadline = RunStop::Clock::time_point::max();
  // Ends the run with CANCELLED when raised. Borrowed, or shared with asynchronous kernels if a
  // std::shared_ptr owns it. Null means no limit.
  CancelFlag* cancelled = nullptr;
  // Ends the run like `cancelled`; the error states that the session has been closed.
  CancelFlag* closed = nullptr;
};

// Returns the error of a run that `limits` have ended: "the run was cancelled". REQUIRES: `stop`,
// which has these limits, has stopped, and its Stop() has not been called
absl::Status WhyStopped(const RunStop& stop, const RunLimits& limits);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_RUN_LIMITS_H_
