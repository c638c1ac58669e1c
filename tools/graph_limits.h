// Limits and rights from the command line, for commands that read or run graphs.
#ifndef GRADFLOW_TOOLS_GRAPH_LIMITS_H_
#define GRADFLOW_TOOLS_GRAPH_LIMITS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/allocator.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/file_access.h"

namespace gradflow::tools {

// Returns the default limits with those that the flags "NAME=NUMBER" set. INVALID_ARGUMENT, with
// the names that there are, for anything else.
absl::StatusOr<GraphLimits> MakeGraphLimits(const std::vector<std::string>& flags);

// Limits of a command that runs no graph.
struct CommandLimits {
  // Seconds until the command ends; 0 for no limit.
  double timeout_seconds = 0;
  // Maximum bytes of the messages of a graph, of its constants, of its shapes, and of the tensors
  // of a checkpoint; 0 for no limit.
  int64_t memory_limit = 0;
};
// Overload that adds these limits.
absl::StatusOr<GraphLimits> MakeGraphLimits(const std::vector<std::string>& flags,
                                            const CommandLimits& limits);
// Returns an allocator that `memory_limit` bounds, for the tensors of a checkpoint.
std::shared_ptr<Allocator> LimitedAllocator(const CommandLimits& limits);

// The folders whose files a graph may read and write.
struct FileFlags {
  std::vector<std::string> allow_read;
  std::vector<std::string> allow_write;
};
// Returns the access that the flags give: none without flags. Errors name the flag.
absl::StatusOr<FileAccess> MakeFileAccess(const FileFlags& flags);

// Returns the time in `seconds` seconds; the latest there is if `seconds` is 0.
std::chrono::steady_clock::time_point DeadlineAfter(double seconds);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_GRAPH_LIMITS_H_
