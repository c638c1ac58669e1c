#include "tools/names.h"

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tensor_id.h"

namespace gradflow::tools {

absl::string_view FileName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

std::string NameOf(const Output& tensor) {
  return FormatTensorId({tensor.node()->name(), tensor.index()});
}

absl::StatusOr<Output> FindTensor(const Graph& graph, absl::string_view name) {
  const auto error = [&](absl::string_view text) {
    return errors::InvalidArgument("'", errors::Printable(name), "' ", text);
  };
  const absl::StatusOr<TensorId> id = ParseTensorId(name);
  if (!id.ok() || id->IsControl()) return error("must be the name of a tensor, NODE or NODE:INDEX");
  const Node* const node = graph.FindNode(id->node);
  if (node == nullptr) return error("is not in the graph");
  if (id->index >= node->num_outputs()) {
    return error(absl::StrCat("must be one of the ", node->num_outputs(), " outputs of the node"));
  }
  return Output(node, id->index);
}

}  // namespace gradflow::tools
