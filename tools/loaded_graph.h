// LoadGraph: loads a graph into a session and reads its feeds, for `run` and `bench`.
#ifndef GRADFLOW_TOOLS_LOADED_GRAPH_H_
#define GRADFLOW_TOOLS_LOADED_GRAPH_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "tools/commands.h"

namespace gradflow::tools {

struct LoadedGraph {
  // A LightCopy(); empty unless LoadOptions::keep_graph.
  GraphDef graph;
  std::unique_ptr<Session> session;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
  // For each fetch, its name for the user: the name in the signature of a SavedModel, or the
  // tensor's name.
  std::vector<std::string> labels;
  // For each fetch, the path of the file to write; empty to print the tensor.
  std::vector<std::string> files;
  std::vector<std::string> targets;
};

// Options of LoadGraph.
struct LoadOptions {
  // Keeps a LightCopy() of the graph in addition to the session's graph.
  bool keep_graph = false;
  // True if the session runs more than once, so that optimizing the plan pays off.
  bool repeats = true;
  // At this time, the import ends with DEADLINE_EXCEEDED.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Loads the graph and the feeds. Errors name the file or flag.
absl::StatusOr<LoadedGraph> LoadGraph(const GraphFlags& flags, const LoadOptions& options);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_LOADED_GRAPH_H_
