// Limits and file access from the command line, for commands that read or run graphs.
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

// Returns the default limits with the changes of the flags "NAME=NUMBER". Any other flag is
// INVALID_ARGUMENT; the error lists the known names.
absl::StatusOr<GraphLimits> MakeGraphLimits(const std::vector<std::string>& flags);

// Limits of the commands inspect, gradients, checkpoint, freeze, convert and view.
struct CommandLimits {
  // Seconds until the command ends; 0 for no limit.
  double timeout_seconds = 0;
  // Maximum bytes, each separately, of the file and the messages of a graph, of its constants, of
  // its shapes, and of the tensors of a checkpoint; 0 for no limit.
  int64_t memory_limit = 0;
};
// Overload that also applies the limits of the command.
absl::StatusOr<GraphLimits> MakeGraphLimits(const std::vector<std::string>& flags,
                                            const CommandLimits& limits);
// Returns an allocator that `memory_limit` bounds, for the tensors of a checkpoint.
std::shared_ptr<Allocator> LimitedAllocator(const CommandLimits& limits);

// The folders whose files a graph may read and write.
struct FileFlags {
  std::vector<std::string> allow_read;
  std::vector<std::string> allow_write;
};
// Returns the access that the flags allow. Without flags, a graph may touch no files. Errors name
// the flag.
absl::StatusOr<FileAccess> MakeFileAccess(const FileFlags& flags);

// Returns the time that is `seconds` seconds from now; the latest possible time for 0.
std::chrono::steady_clock::time_point DeadlineAfter(double seconds);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_GRAPH_LIMITS_H_
