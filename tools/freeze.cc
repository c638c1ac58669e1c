// gradflow freeze: replaces the variables of a graph by their values in a checkpoint.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/scope.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/saved_model/loader.h"
#include "tools/checkpoints.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/models.h"

namespace gradflow::tools {
namespace {

// Returns the name of the node of an input: "a", "a:1" or "^a".
std::string NodeOf(absl::string_view input) {
  if (absl::StartsWith(input, "^")) input.remove_prefix(1);
  return std::string(input.substr(0, input.find(':')));
}

// Returns the names of the nodes that the outputs need.
absl::StatusOr<std::set<std::string>> Needed(const std::map<std::string, const NodeDef*>& nodes,
                                             const std::vector<std::string>& outputs) {
  std::set<std::string> needed;
  std::vector<std::string> open;
  for (const std::string& output : outputs) {
    const absl::StatusOr<TensorId> id = ParseTensorId(output);
    if (!id.ok() || nodes.count(std::string(id->node)) == 0) {
      return errors::InvalidArgument("--outputs '", output, "' is not in the graph");
    }
    open.emplace_back(id->node);
  }
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto found = nodes.find(name);
    if (found == nodes.end() || !needed.insert(name).second) continue;
    for (const std::string& input : found->second->input()) open.push_back(NodeOf(input));
  }
  return needed;
}

// Returns UNIMPLEMENTED if a function that the needed nodes call, directly or through other
// functions, has a variable, because only variables outside of functions are replaced.
absl::Status CheckFunctions(const GraphDef& graph, const std::set<std::string>& needed) {
  std::map<std::string, const FunctionDef*> functions;
  for (const FunctionDef& function : graph.library().function()) {
    functions.emplace(function.signature().name(), &function);
  }
  std::set<std::string> reached;
  std::vector<const FunctionDef*> open;
  const auto reach = [&](const std::string& name) {
    const auto found = functions.find(name);
    if (found != functions.end() && reached.insert(name).second) open.push_back(found->second);
  };
  const auto reach_from = [&](const NodeDef& node) {
    reach(node.op());
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func()) reach(value.func().name());
      for (const NameAttrList& function : value.list().func()) reach(function.name());
    }
  };
  for (const NodeDef& node : graph.node()) {
    if (needed.count(node.name()) > 0) reach_from(node);
  }
  while (!open.empty()) {
    const FunctionDef& function = *open.back();
    open.pop_back();
    for (const NodeDef& node : function.node_def()) {
      VariableNode variable;
      if (IsVariable(node, &variable)) {
        return errors::Unimplemented("function '", function.signature().name(),
                                     "' has the variable '", variable.info.name,
                                     "'; freezing replaces variables outside of functions");
      }
      reach_from(node);
    }
  }
  return absl::OkStatus();
}

// Replaces a variable by a constant.
void Replace(const Tensor& value, NodeDef* node) {
  node->set_op("Const");
  node->clear_input();
  node->clear_attr();
  (*node->mutable_attr())["dtype"].set_type(value.dtype());
  value.AsProtoTensorContent((*node->mutable_attr())["value"].mutable_tensor());
}

// Changes a node that takes the handle of a variable to a node that takes the value. Returns
// UNIMPLEMENTED for ops that do not only read the variable.
absl::Status ReadValue(NodeDef* node) {
  auto& attrs = *node->mutable_attr();
  const auto dtype = attrs.find("dtype");
  const auto batch_dims = attrs.find("batch_dims");
  if (node->op() == "ReadVariableOp" && dtype != attrs.end()) {
    node->set_op("Identity");
    const auto type = dtype->second.type();
    attrs.clear();
    attrs["T"].set_type(type);
    return absl::OkStatus();
  }
  if (node->op() == "ResourceGather" && dtype != attrs.end() &&
      (batch_dims == attrs.end() || batch_dims->second.i() == 0)) {
    node->set_op("Gather");
    attrs["Tparams"].set_type(dtype->second.type());
    attrs.erase("dtype");
    attrs.erase("batch_dims");
    return absl::OkStatus();
  }
  return errors::Unimplemented("node '", node->name(), "' (", node->op(),
                               ") uses a variable; freezing takes graphs that only read them");
}

// Freezes a signature of a SavedModel.
absl::Status FreezeSavedModel(const FreezeFlags& flags, const ImportGraphDefOptions& import,
                              std::ostream& out) {
  if (!flags.checkpoint.empty()) {
    return errors::InvalidArgument("'", flags.checkpoint,
                                   "': a SavedModel has its own variables; expected no checkpoint");
  }
  GRADFLOW_ASSIGN_OR_RETURN(FrozenModel model,
                            FreezeModel(flags.graph, flags.tag, flags.signature, flags.outputs,
                                        /*keep_variables=*/false, import.limits));
  GRADFLOW_RETURN_IF_ERROR(WriteGraphDef(flags.output, model.graph));
  out << model.graph.node_size() << " nodes, " << model.graph.library().function_size()
      << " functions, " << model.num_variables << " variables\n";
  for (const auto& [what, tensors] :
       {std::pair("input", &model.inputs), std::pair("output", &model.outputs)}) {
    for (const SignatureTensor& tensor : *tensors) {
      out << what << " " << errors::Printable(tensor.name) << ": "
          << errors::Printable(tensor.tensor_name) << "\n";
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FreezeCommand(const FreezeFlags& flags, std::ostream& out) {
  ImportGraphDefOptions import;
  GRADFLOW_ASSIGN_OR_RETURN(import.limits, MakeGraphLimits(flags.graph_limits, flags.limits));
  if (MaybeSavedModelDirectory(flags.graph)) return FreezeSavedModel(flags, import, out);
  for (const auto& [flag, value] :
       {std::pair("--tag", &flags.tag), std::pair("--signature", &flags.signature)}) {
    if (value->empty()) continue;
    return errors::InvalidArgument(flag, ": '", flags.graph, "' is not a SavedModel");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadGraphDef(flags.graph, import.limits));
  if (flags.checkpoint.empty() || flags.outputs.empty()) {
    return errors::InvalidArgument("freezing a graph needs a checkpoint and --outputs");
  }
  const std::shared_ptr<Allocator> allocator = LimitedAllocator(flags.limits);
  GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                            OpenCheckpoint(flags.checkpoint, allocator));
  std::map<std::string, const NodeDef*> nodes;
  for (const NodeDef& node : graph.node()) nodes.emplace(node.name(), &node);
  GRADFLOW_ASSIGN_OR_RETURN(const std::set<std::string> needed,
                            Needed(nodes, absl::StrSplit(flags.outputs, ',')));

  GRADFLOW_RETURN_IF_ERROR(CheckFunctions(graph, needed));
  GraphDef frozen;
  *frozen.mutable_versions() = graph.versions();
  *frozen.mutable_library() = graph.library();
  std::set<std::string> handles;
  int variables = 0;
  for (const NodeDef& node : graph.node()) {
    if (needed.count(node.name()) == 0) continue;
    NodeDef* const copy = frozen.add_node();
    *copy = node;
    VariableNode variable;
    if (!IsVariable(node, &variable)) continue;
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(checkpoint, variable, allocator));
    Replace(value, copy);
    if (variable.info.is_resource) handles.insert(node.name());
    ++variables;
  }
  for (NodeDef& node : *frozen.mutable_node()) {
    for (const std::string& input : node.input()) {
      if (absl::StartsWith(input, "^") || handles.count(NodeOf(input)) == 0) continue;
      GRADFLOW_RETURN_IF_ERROR(ReadValue(&node));
      break;
    }
  }
  // Checks the result. For example, it cannot contain assignments of variables.
  const Scope scope = Scope::NewRootScope();
  if (const absl::Status status = ImportGraphDef(import, frozen, scope.graph()); !status.ok()) {
    return errors::Prefix("the frozen graph cannot run: ", status);
  }
  GRADFLOW_RETURN_IF_ERROR(WriteGraphDef(flags.output, frozen));
  out << frozen.node_size() << " of " << graph.node_size() << " nodes, " << variables
      << " variables\n";
  return absl::OkStatus();
}

}  // namespace gradflow::tools
