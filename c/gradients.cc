// TF_AddGradients. The gradients are made in a copy of the graph, so that the graph does not change
// on error.
#include "gradflow/gradients/gradients.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/graph.h"
#include "gradflow/c/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::capi {
namespace {

// Returns true if a node has the name, or a name that begins with it and "/".
bool IsScopeTaken(const Graph& graph, absl::string_view prefix) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    absl::string_view name = graph.node(id)->name();
    if (absl::ConsumePrefix(&name, prefix) && (name.empty() || name[0] == '/')) return true;
  }
  return false;
}

absl::StatusOr<std::string> ChoosePrefix(const Graph& graph, const char* prefix) {
  if (prefix != nullptr) {
    if (IsScopeTaken(graph, prefix)) {
      return errors::InvalidArgument("prefix ", internal::Quoted(prefix),
                                     " conflicts with existing node in the graph");
    }
    return std::string(prefix);
  }
  std::string name = "gradients";
  for (int i = 1; IsScopeTaken(graph, name); ++i) name = absl::StrCat("gradients_", i);
  return name;
}

// Returns the outputs of the nodes of the same names.
std::vector<Output> CopiesOf(const Graph& copy, const TF_Output* outputs, int count) {
  std::vector<Output> copies;
  for (int i = 0; i < count; ++i) {
    copies.emplace_back(copy.FindNode(FromC(outputs[i].oper)->name()), outputs[i].index);
  }
  return copies;
}

// Returns UNIMPLEMENTED if a differentiated output is an index. Gradients of other indexes, which
// later nodes hide, do not exist; but programs rely on this error of TensorFlow.
absl::Status CheckNoIndexes(const TF_Output* y, int ny) {
  for (int i = 0; i < ny; ++i) {
    const Node& node = *FromC(y[i].oper);
    if (node.type_string() != "ArgMax" && node.type_string() != "ArgMin") continue;
    return errors::Unimplemented(internal::NodePrefix(node.def()),
                                 "No gradient defined for op: ", node.type_string());
  }
  return absl::OkStatus();
}

absl::Status AddGradients(TF_Graph* graph, const char* prefix, const TF_Output* y, int ny,
                          const TF_Output* x, int nx, const TF_Output* dx, TF_Output* dy) {
  const Graph& original = graph->graph;
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(original, y, ny, "y"));
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(original, x, nx, "x"));
  if (dx != nullptr) GRADFLOW_RETURN_IF_ERROR(CheckOutputs(original, dx, ny, "dx"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(dy, nx, "dy"));
  GRADFLOW_RETURN_IF_ERROR(CheckNoIndexes(y, ny));
  const GraphChange change(graph);
  GRADFLOW_ASSIGN_OR_RETURN(const std::string name, ChoosePrefix(original, prefix));

  ImportGraphDefOptions import;
  import.require_kernels = false;
  const Scope root = Scope::NewRootScope(original.registry());
  const Graph& copy = *root.graph();
  GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(import, original.def(), root.graph()));
  const int num_nodes = copy.num_nodes();
  GradientBuildOptions options;
  options.plain_names = true;
  options.of_integers = true;
  std::vector<Output> gradients;
  const Scope scope = internal::SubScopeOfUnusedName(root, name);
  const std::vector<Output> of = CopiesOf(copy, y, ny);
  const std::vector<Output> with_respect_to = CopiesOf(copy, x, nx);
  GRADFLOW_RETURN_IF_ERROR(
      dx == nullptr ? AddSymbolicGradients(scope, of, with_respect_to, &gradients, options)
                    : AddSymbolicGradients(scope, of, with_respect_to, CopiesOf(copy, dx, ny),
                                           &gradients, options));

  GraphDef additions;
  *additions.mutable_versions() = copy.def().versions();
  *additions.mutable_library() = copy.def().library();
  for (int id = num_nodes; id < copy.num_nodes(); ++id) {
    *additions.add_node() = copy.node(id)->def();
  }
  GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(import, std::move(additions), &graph->graph));
  for (int i = 0; i < nx; ++i) {
    dy[i] =
        IsNoGradient(gradients[i])
            ? TF_Output{nullptr, -1}
            : TF_Output{ToC(original.FindNode(gradients[i].node()->name())), gradients[i].index()};
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gradflow::capi

void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
                     TF_Status* status, TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, nullptr, y, ny, x, nx, dx, status, dy);
}

void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x,
                               int nx, TF_Output* dx, TF_Status* status, TF_Output* dy) {
  gradflow::capi::Call(
      status, [&] { return gradflow::capi::AddGradients(g, prefix, y, ny, x, nx, dx, dy); });
}
