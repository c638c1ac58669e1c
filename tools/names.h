// Names of files, and of tensors of a graph.
#ifndef GRADFLOW_TOOLS_NAMES_H_
#define GRADFLOW_TOOLS_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/ops.h"

namespace gradflow::tools {

// Returns the path without its folder.
absl::string_view FileName(absl::string_view path);

// Returns the name of a tensor: "node" or "node:1".
std::string NameOf(const Output& tensor);

// Returns the tensor with this name. Returns INVALID_ARGUMENT, with the name, if the graph has no
// such tensor.
absl::StatusOr<Output> FindTensor(const Graph& graph, absl::string_view name);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_NAMES_H_
