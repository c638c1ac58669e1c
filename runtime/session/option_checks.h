// Checks of the options of sessions and runs. Internal.
//
// Errors are UNIMPLEMENTED for unsupported options, and INVALID_ARGUMENT for values out of range.
#ifndef GRADFLOW_RUNTIME_SESSION_OPTION_CHECKS_H_
#define GRADFLOW_RUNTIME_SESSION_OPTION_CHECKS_H_

#include "absl/status/status.h"
#include "gradflow/runtime/session/options.h"

namespace gradflow::internal {

absl::Status CheckSessionOptions(const SessionOptions& options);
absl::Status CheckRunOptions(const RunOptions& options);
absl::Status CheckCallableOptions(const CallableOptions& options);

}  // namespace gradflow::internal

#endif  // GRADFLOW_RUNTIME_SESSION_OPTION_CHECKS_H_
