#include "gradflow/runtime/plan/tensor_names.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tensor_id.h"

namespace gradflow {
namespace {

absl::StatusOr<const Node*> FindNode(const Graph& graph, absl::string_view role,
                                     absl::string_view full_name, absl::string_view node_name) {
  if (const Node* node = graph.FindNode(node_name)) {
    const absl::Status resolved = node->CheckResolved();
    if (resolved.ok()) return node;
    return errors::Prefix(absl::StrCat(role, " ", internal::Quoted(full_name), ": "), resolved);
  }
  // Names that differ much in length are not near. The bound keeps a typo in a graph of a million
  // nodes from taking seconds.
  constexpr size_t kMaxCandidates = 4096;
  std::vector<std::string> candidates;
  for (int id = 0; id < graph.num_nodes() && candidates.size() < kMaxCandidates; ++id) {
    const std::string& name = graph.node(id)->name();
    const auto difference =
        static_cast<int64_t>(name.size()) - static_cast<int64_t>(node_name.size());
    if (std::abs(difference) <= 3) candidates.push_back(name);
  }
  const std::vector<std::string> near = NearNames(node_name.substr(0, 200), candidates);
  return errors::NotFound(
      role, " ", internal::Quoted(full_name), ": the graph has no node of this name",
      near.empty() ? "" : absl::StrCat("; did you mean '", absl::StrJoin(near, "' or '"), "'?"));
}

}  // namespace

std::string TensorName(const TensorRef& tensor) {
  return absl::StrCat(tensor.node->name(), ":", tensor.output);
}

absl::StatusOr<TensorRef> FindTensor(const Graph& graph, absl::string_view role,
                                     absl::string_view name) {
  const absl::StatusOr<TensorId> id = ParseTensorId(name);
  if (!id.ok()) return errors::Prefix(absl::StrCat(role, " "), id.status());
  if (id->IsControl()) {
    return errors::InvalidArgument(role, " ", internal::Quoted(name),
                                   ": expected the name of a tensor, 'node' or 'node:output'");
  }
  TensorRef tensor;
  tensor.output = id->index;
  GRADFLOW_ASSIGN_OR_RETURN(tensor.node, FindNode(graph, role, name, id->node));
  if (const int outputs = tensor.node->num_outputs(); tensor.output >= outputs) {
    return errors::InvalidArgument(role, " ", internal::Quoted(name), ": node '",
                                   tensor.node->name(), "' (", tensor.node->type_string(), ") has ",
                                   outputs == 0 ? "no outputs; it can only be run as a target"
                                   : outputs == 1
                                       ? "only output 0"
                                       : absl::StrCat("only outputs 0 to ", outputs - 1));
  }
  return tensor;
}

absl::StatusOr<const Node*> FindTarget(const Graph& graph, absl::string_view name) {
  if (name.empty() || name[0] == '^' || name.find(':') != absl::string_view::npos) {
    return errors::InvalidArgument("target ", internal::Quoted(name),
                                   ": expected the name of a node, without '^' or ':output'");
  }
  return FindNode(graph, "target", name, name);
}

}  // namespace gradflow
