#include "tensorflow/cc/tools/freeze_saved_model.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/status.h"
#include "gradflow/saved_model/freeze.h"
#include "gradflow/saved_model/signature.h"

namespace tensorflow::compat_internal {

namespace {

// Sorts the nodes by the order of `original`. A node that `original` lacks stays before the node
// that follows it.
void SortNodes(const GraphDef& original, GraphDef* graph) {
  absl::flat_hash_map<absl::string_view, int> places;
  for (int i = 0; i < original.node_size(); ++i) places.emplace(original.node(i).name(), i);
  std::vector<std::pair<int, NodeDef*>> nodes(graph->node_size());
  int next = original.node_size();
  for (int i = graph->node_size(); i-- > 0;) {
    const auto place = places.find(graph->node(i).name());
    if (place != places.end()) next = place->second;
    nodes[i] = {next, graph->mutable_node(i)};
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  GraphDef sorted;
  for (const auto& [place, node] : nodes) *sorted.add_node() = std::move(*node);
  graph->mutable_node()->Swap(sorted.mutable_node());
}

}  // namespace

absl::Status FreezeModel(const MetaGraphDef& meta_graph, LocalSessionCalls* session,
                         GraphDef* frozen, std::unordered_set<std::string>* inputs,
                         std::unordered_set<std::string>* outputs) {
  for (const auto& [name, def] : meta_graph.signature_def()) {
    GRADFLOW_ASSIGN_OR_RETURN(const gradflow::Signature signature,
                              gradflow::Signature::Make(name, def, nullptr));
    for (const auto& input : signature.inputs()) inputs->insert(input.tensor_name);
    for (const auto& output : signature.outputs()) outputs->insert(output.tensor_name);
  }
  gradflow::FreezeGraphOptions options;
  options.inline_calls = false;
  GRADFLOW_ASSIGN_OR_RETURN(
      gradflow::FrozenGraph made,
      gradflow::FreezeGraph(meta_graph.graph_def(),
                            std::vector<std::string>(outputs->begin(), outputs->end()),
                            session == nullptr ? nullptr : session->session(), options));
  SortNodes(meta_graph.graph_def(), &made.graph);
  // The result has all functions, like TensorFlow's.
  std::set<std::string> known;
  for (const FunctionDef& function : made.graph.library().function()) {
    known.insert(function.signature().name());
  }
  for (const FunctionDef& function : meta_graph.graph_def().library().function()) {
    if (known.insert(function.signature().name()).second) {
      *made.graph.mutable_library()->add_function() = function;
    }
  }
  *frozen = std::move(made.graph);
  return absl::OkStatus();
}

}  // namespace tensorflow::compat_internal
