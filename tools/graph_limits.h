// Limits from the command line, for commands that read graphs.
#ifndef GRADFLOW_TOOLS_GRAPH_LIMITS_H_
#define GRADFLOW_TOOLS_GRAPH_LIMITS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/graph/import.h"

namespace gradflow::tools {

// Returns the default limits with those that the flags "NAME=NUMBER" set. INVALID_ARGUMENT, with
// the names that there are, for anything else.
absl::StatusOr<GraphLimits> MakeGraphLimits(const std::vector<std::string>& flags);

// Returns the time in `seconds` seconds; the latest there is if `seconds` is 0.
std::chrono::steady_clock::time_point DeadlineAfter(double seconds);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_GRAPH_LIMITS_H_
