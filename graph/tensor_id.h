// The names of tensors in graphs and on command lines: "node:output", "node" for output 0, and
// "^node" for a control input.
#ifndef GRADFLOW_GRAPH_TENSOR_ID_H_
#define GRADFLOW_GRAPH_TENSOR_ID_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;

// An output of a node, or a control input, as text names it: "node", "node:1", "^node".
struct TensorId {
  // A part of the text that was parsed.
  absl::string_view node;
  // -1 for a control input.
  int index = 0;
  bool IsControl() const { return index < 0; }
};

// INVALID_ARGUMENT if the name of the node is missing or the index is too large. Whether there is
// such a node is not looked at.
absl::StatusOr<TensorId> ParseTensorId(absl::string_view text);

// "node" for output 0, "node:2", "^node".
std::string FormatTensorId(const TensorId& id);

// The outputs of `graph` that none of its nodes uses, as by FormatTensorId, in the order of the
// nodes.
std::vector<std::string> UnusedOutputs(const Graph& graph);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_TENSOR_ID_H_
