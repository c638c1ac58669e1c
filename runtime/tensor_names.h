// From the names that a run is asked for to the nodes of its graph.
//
// A tensor is named "node:output", or "node" for output 0; a node to run is named "node".
#ifndef GRADFLOW_RUNTIME_TENSOR_NAMES_H_
#define GRADFLOW_RUNTIME_TENSOR_NAMES_H_

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

// "node:output".
std::string TensorName(const TensorRef& tensor);

// `role` ("feed", "fetch") begins the error's text. NOT_FOUND, with the nearest names, if there is
// no such node; INVALID_ARGUMENT if the node has no such output or the name is none of a tensor.
absl::StatusOr<TensorRef> FindTensor(const Graph& graph, absl::string_view role,
                                     absl::string_view name);

// The same for the name of a node.
absl::StatusOr<const Node*> FindTarget(const Graph& graph, absl::string_view name);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_TENSOR_NAMES_H_
