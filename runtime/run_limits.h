// RunLimits: what may end a run early. Not for users.
#ifndef GRADFLOW_RUNTIME_RUN_LIMITS_H_
#define GRADFLOW_RUNTIME_RUN_LIMITS_H_

#include <atomic>
#include <chrono>

#include "absl/status/status.h"
#include "gradflow/core/run_stop.h"

namespace gradflow {

// Looked at before each node and, by kernels, before each block of a loop. The flags also end the
// making of the run's plan; the deadline does not, or a run whose plan takes longer to make than it
// may itself would never come to an end, however often it is tried.
struct RunLimits {
  // Sets the timeout, and the deadline from now on. Zero is no limit.
  void SetTimeout(std::chrono::milliseconds limit);

  // For messages.
  std::chrono::milliseconds timeout{0};
  // After which the run is DEADLINE_EXCEEDED.
  RunStop::Clock::time_point deadline = RunStop::Clock::time_point::max();
  // When true, the run is CANCELLED. Borrowed; null is no limit.
  const std::atomic<bool>* cancelled = nullptr;
  // The same, with another text: the session has been closed.
  const std::atomic<bool>* closed = nullptr;
};

// Why a run of these limits is to end: "the run was cancelled". REQUIRES: stop, which has these
// limits, has stopped, and no one has called its Stop()
absl::Status WhyStopped(const RunStop& stop, const RunLimits& limits);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_RUN_LIMITS_H_
