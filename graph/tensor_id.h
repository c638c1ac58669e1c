// TensorId: the name of a tensor in a graph or on a command line. "node:1" is output 1 of a node,
// "node" its output 0, and "^node" a control input.
#ifndef GRADFLOW_GRAPH_TENSOR_ID_H_
#define GRADFLOW_GRAPH_TENSOR_ID_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;

struct TensorId {
  // Points into the parsed text.
  absl::string_view node;
  // -1 for a control input.
  int index = 0;
  bool IsControl() const { return index < 0; }
};

// Parses the name of a tensor. Returns INVALID_ARGUMENT if the name of the node is empty or the
// index is too large. The node need not exist.
absl::StatusOr<TensorId> ParseTensorId(absl::string_view text);

// Returns "node" for output 0, otherwise "node:2" or "^node".
std::string FormatTensorId(const TensorId& id);

// Returns the outputs of `graph` that no node takes as input, in the order of the nodes, without
// the outputs of Switch and Enter nodes and the indexes of Merge nodes. The ids point into the
// graph.
std::vector<TensorId> UnusedOutputIds(const Graph& graph);
// Returns the names of these outputs.
std::vector<std::string> UnusedOutputs(const Graph& graph);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_TENSOR_ID_H_
