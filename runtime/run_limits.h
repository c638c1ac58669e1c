// RunLimits: what may end a run early, from when it is asked for: while it waits for its plan and
// while its nodes run. Not for users.
#ifndef GRADFLOW_RUNTIME_RUN_LIMITS_H_
#define GRADFLOW_RUNTIME_RUN_LIMITS_H_

#include <atomic>
#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "gradflow/core/run_stop.h"

namespace gradflow {

// Looked at before each node and, by kernels, before each block of a loop.
struct RunLimits {
  // After which the run is DEADLINE_EXCEEDED. Zero is no limit.
  std::chrono::milliseconds timeout{0};
  // When that is; not set, it is counted from when Deadline() is called.
  std::optional<RunStop::Clock::time_point> deadline = std::nullopt;
  // When true, the run is CANCELLED. Borrowed; null is no limit.
  const std::atomic<bool>* cancelled = nullptr;
  // The same, with another text: the session has been closed.
  const std::atomic<bool>* closed = nullptr;

  // time_point::max() without a limit.
  RunStop::Clock::time_point Deadline() const;
};

// Why a run of these limits is to end: "the run was cancelled". REQUIRES: stop, which has these
// limits, has stopped, and no one has called its Stop()
absl::Status WhyStopped(const RunStop& stop, const RunLimits& limits);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_RUN_LIMITS_H_
