// Looks up the nodes and tensors of a graph by name.
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

// Finds a tensor by name. Returns NOT_FOUND with the nearest names if there is no such node.
// Returns INVALID_ARGUMENT if the node has no such output or `name` is not a tensor name. The error
// text begins with `role` ("feed" or "fetch").
absl::StatusOr<TensorRef> FindTensor(const Graph& graph, absl::string_view role,
                                     absl::string_view name);

// Like FindTensor(), for the name of a node.
absl::StatusOr<const Node*> FindTarget(const Graph& graph, absl::string_view name);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_TENSOR_NAMES_H_
