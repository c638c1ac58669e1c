// A graph from a file in a session, with its feeds read: what `run` and `bench` start from.
#ifndef GRADFLOW_TOOLS_LOADED_GRAPH_H_
#define GRADFLOW_TOOLS_LOADED_GRAPH_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session.h"
#include "tools/commands.h"

namespace gradflow::tools {

struct LoadedGraph {
  // Empty unless it was to be kept.
  GraphDef graph;
  std::unique_ptr<Session> session;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
  // For each fetch the file it goes to; empty to print it.
  std::vector<std::string> files;
  std::vector<std::string> targets;
};

// How a graph is loaded.
struct LoadOptions {
  // Whether a copy of the graph is kept beside that of the session.
  bool keep_graph = false;
  // Whether the session prepares for more runs than one.
  bool repeats = true;
};

// Errors name the file or flag.
absl::StatusOr<LoadedGraph> LoadGraph(const GraphFlags& flags, const LoadOptions& options);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_LOADED_GRAPH_H_
