#include "tools/graph_limits.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/runtime/memory/pool_allocator.h"

namespace gradflow::tools {
namespace {

struct NamedLimit {
  const char* name;
  int64_t GraphLimits::*value;
};
constexpr NamedLimit kLimits[] = {
    {"max_file_bytes", &GraphLimits::max_file_bytes},
    {"max_message_bytes", &GraphLimits::max_message_bytes},
    {"max_nodes", &GraphLimits::max_nodes},
    {"max_functions", &GraphLimits::max_functions},
    {"max_inputs", &GraphLimits::max_inputs},
    {"max_attrs", &GraphLimits::max_attrs},
    {"max_list_outputs", &GraphLimits::max_list_outputs},
    {"max_name_bytes", &GraphLimits::max_name_bytes},
    {"max_list_length", &GraphLimits::max_list_length},
    {"max_constant_bytes", &GraphLimits::max_constant_bytes},
    {"max_shape_bytes", &GraphLimits::max_shape_bytes},
};

absl::Status SetLimit(const std::string& flag, GraphLimits* limits) {
  const size_t equals = flag.find('=');
  std::string names;
  for (const NamedLimit& limit : kLimits) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", limit.name);
    if (flag.substr(0, equals) != limit.name || equals == std::string::npos) continue;
    int64_t value = 0;
    if (absl::SimpleAtoi(flag.substr(equals + 1), &value) && value >= 0) {
      limits->*limit.value = value;
      return absl::OkStatus();
    }
  }
  return errors::InvalidArgument(
      "--graph-limit '", flag,
      "' must be NAME=NUMBER, where NUMBER is 0 or more and NAME is one of ", names);
}

}  // namespace

absl::StatusOr<GraphLimits> MakeGraphLimits(const std::vector<std::string>& flags) {
  GraphLimits limits;
  for (const std::string& flag : flags) GRADFLOW_RETURN_IF_ERROR(SetLimit(flag, &limits));
  return limits;
}

absl::StatusOr<GraphLimits> MakeGraphLimits(const std::vector<std::string>& flags,
                                            const CommandLimits& limits) {
  GRADFLOW_ASSIGN_OR_RETURN(GraphLimits graph, MakeGraphLimits(flags));
  graph.deadline = DeadlineAfter(limits.timeout_seconds);
  if (limits.memory_limit == 0) return graph;
  for (int64_t* const limit : {&graph.max_file_bytes, &graph.max_message_bytes,
                               &graph.max_constant_bytes, &graph.max_shape_bytes}) {
    *limit = std::min(*limit, limits.memory_limit);
  }
  return graph;
}

std::shared_ptr<Allocator> LimitedAllocator(const CommandLimits& limits) {
  if (limits.memory_limit == 0) return SystemAllocator();
  return std::make_shared<PoolAllocator>(/*limit=*/0, static_cast<size_t>(limits.memory_limit));
}

absl::StatusOr<FileAccess> MakeFileAccess(const FileFlags& flags) {
  const absl::StatusOr<FileAccess> read = FileAccess::Below(flags.allow_read, {});
  if (!read.ok()) return errors::Prefix("--allow-read ", read.status());
  const absl::StatusOr<FileAccess> all = FileAccess::Below(flags.allow_read, flags.allow_write);
  if (!all.ok()) return errors::Prefix("--allow-write ", all.status());
  return all;
}

std::chrono::steady_clock::time_point DeadlineAfter(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (seconds == 0) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace gradflow::tools
