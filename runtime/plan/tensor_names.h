// Look-up of a graph's nodes and tensors by the names that a run is given.
//
// A tensor is named "node:output", or "node" for output 0. A node to run is named "node".
#ifndef GRADFLOW_RUNTIME_PLAN_TENSOR_NAMES_H_
#define GRADFLOW_RUNTIME_PLAN_TENSOR_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/graph.h"

namespace gradflow {

// An output of a node.
struct TensorRef {
  const Node* node = nullptr;
  int output = 0;
};

// Returns "node:output".
std::string TensorName(const TensorRef& tensor);

// Finds a tensor by its name. The error's text begins with `role` ("feed", "fetch"): NOT_FOUND,
// with the nearest names, if there is no such node; INVALID_ARGUMENT if the node has no such output
// or the name is not that of a tensor.
absl::StatusOr<TensorRef> FindTensor(const Graph& graph, absl::string_view role,
                                     absl::string_view name);

// FindTensor() for the name of a node.
absl::StatusOr<const Node*> FindTarget(const Graph& graph, absl::string_view name);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_TENSOR_NAMES_H_
