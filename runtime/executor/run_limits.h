// RunLimits: conditions that end a run early. Internal.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_RUN_LIMITS_H_
#define GRADFLOW_RUNTIME_EXECUTOR_RUN_LIMITS_H_

#include <atomic>
#include <chrono>

#include "absl/status/status.h"
#include "gradflow/core/stop_token.h"

namespace gradflow {

// Conditions that end a run early. Checked before each node and, by kernels, before each block of a
// loop. The flags also end the making of the run's plan. The deadline does not: a run would never
// complete, even if tried again, if its plan takes longer to make than the timeout.
struct RunLimits {
  // Sets the timeout, and sets the deadline to `limit` from now. Zero, or more than a year, means
  // no limit.
  void SetTimeout(std::chrono::milliseconds limit);

  // The limit that error messages state.
  std::chrono::milliseconds timeout{0};
  // The time after which the run is DEADLINE_EXCEEDED.
  StopToken::Clock::time_point deadline = StopToken::Clock::time_point::max();
  // Ends the run with CANCELLED when raised. Borrowed, or shared with asynchronous kernels if a
  // std::shared_ptr owns it. Null means no limit.
  CancelFlag* cancelled = nullptr;
  // Ends the run like `cancelled`; the error states that the session has been closed.
  CancelFlag* closed = nullptr;
};

// Returns the error of a run that `limits` have ended, such as "the run was cancelled". REQUIRES:
// `stop`, which has these limits, has stopped, and its Stop() has not been called
absl::Status WhyStopped(const StopToken& stop, const RunLimits& limits);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_RUN_LIMITS_H_
