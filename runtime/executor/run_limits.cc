#include "gradflow/runtime/executor/run_limits.h"

#include "absl/strings/str_cat.h"

namespace gradflow {

void RunLimits::SetTimeout(std::chrono::milliseconds limit) {
  timeout = limit;
  // A timeout of more than a year counts as no limit, because it could overflow the clock.
  const bool limited = timeout.count() > 0 && timeout < std::chrono::hours(24 * 365);
  deadline = limited ? StopToken::Clock::now() + timeout : StopToken::Clock::time_point::max();
}

absl::Status WhyStopped(const StopToken& stop, const RunLimits& limits) {
  if (stop.cancelled()) return absl::CancelledError("the run was cancelled");
  if (stop.closed()) return absl::CancelledError("the session was closed");
  return absl::DeadlineExceededError(
      absl::StrCat("the run's timeout of ", limits.timeout.count(), " ms is over"));
}

}  // namespace gradflow
