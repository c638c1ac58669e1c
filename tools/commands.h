// The subcommands of `gradflow`. Each prints its result to `out` and returns what went wrong.
#ifndef GRADFLOW_TOOLS_COMMANDS_H_
#define GRADFLOW_TOOLS_COMMANDS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gradflow::tools {

// What `run` and `bench` share: a graph, what goes in and what comes out.
struct GraphFlags {
  std::string graph;
  // NAME=FILE.npy
  std::vector<std::string> feeds;
  // NAME or NAME=FILE.npy; if there are no fetches and no targets, every output that no node of
  // the graph uses.
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  // 0: all cores.
  int threads = 0;
  // Of tensors at once; 0: no limit.
  int64_t memory_limit = 0;
};

struct RunFlags {
  GraphFlags graph;
  // 0: no limit.
  double timeout_seconds = 0;
  // Where to write what each node did; empty for nowhere.
  std::string trace;
};

struct BenchFlags {
  GraphFlags graph;
  int repeat = 100;
  bool json = false;
  bool progress = false;
};

struct OpsFlags {
  // "text" or "pbtxt"
  std::string format = "text";
  // Empty: all ops.
  std::string name;
};

absl::Status RunCommand(const RunFlags& flags, std::ostream& out);
absl::Status BenchCommand(const BenchFlags& flags, std::ostream& out);
absl::Status InspectCommand(const std::string& graph, std::ostream& out);
absl::Status OpsCommand(const OpsFlags& flags, std::ostream& out);
absl::Status ConvertCommand(const std::string& from, const std::string& to);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_COMMANDS_H_
