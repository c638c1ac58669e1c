#include "tensorflow/core/framework/graph_def_util.h"

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace {

using Nodes = protobuf::RepeatedPtrField<NodeDef>;

absl::Status AddDefaults(Nodes* nodes, int begin, const OpRegistryInterface& registry,
                         bool skip_unknown_ops) {
  for (int i = begin; i < nodes->size(); ++i) {
    NodeDef& node = *nodes->Mutable(i);
    const OpDef* op_def = nullptr;
    const absl::Status status = registry.LookUpOpDef(node.op(), &op_def);
    if (status.ok()) {
      AddDefaultsToNodeDef(*op_def, &node);
    } else if (!skip_unknown_ops) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status RemoveNewDefaults(Nodes* nodes, const std::set<std::string>& functions,
                               const OpRegistryInterface& consumer,
                               const OpRegistryInterface& producer,
                               std::set<std::pair<std::string, std::string>>* op_attr_removed) {
  for (NodeDef& node : *nodes) {
    // Functions have no registered definition.
    if (functions.count(node.op()) > 0) continue;
    const OpDef* producer_op = nullptr;
    const OpDef* consumer_op = nullptr;
    TF_RETURN_IF_ERROR(producer.LookUpOpDef(node.op(), &producer_op));
    TF_RETURN_IF_ERROR(consumer.LookUpOpDef(node.op(), &consumer_op));
    std::vector<std::string> removed;
    for (const auto& [name, value] : node.attr()) {
      if (absl::StartsWith(name, "_") || FindAttr(name, *consumer_op) != nullptr) continue;
      const OpDef::AttrDef* const attr = FindAttr(name, *producer_op);
      if (attr == nullptr) {
        return errors::InvalidArgument(
            "Attr '", name, "' missing in producer's OpDef: ", SummarizeOpDef(*producer_op),
            " but found in node: ", FormatNodeDefForError(node));
      }
      if (attr->has_default_value() && AreAttrValuesEqual(value, attr->default_value())) {
        removed.push_back(name);
      }
    }
    for (const std::string& name : removed) {
      node.mutable_attr()->erase(name);
      if (op_attr_removed != nullptr) op_attr_removed->emplace(node.op(), name);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string SummarizeGraphDef(const GraphDef& graph_def) {
  std::string text = absl::StrCat("versions = ", graph_def.versions().ShortDebugString(), ";\n");
  for (const NodeDef& node : graph_def.node()) {
    absl::StrAppend(&text, SummarizeNodeDef(node), ";\n");
  }
  for (const FunctionDef& function : graph_def.library().function()) {
    absl::StrAppend(&text, function.ShortDebugString(), ";\n");
  }
  return text;
}

absl::Status ValidateExternalGraphDefSyntax(const GraphDef& graph_def) {
  for (const NodeDef& node : graph_def.node()) {
    TF_RETURN_IF_ERROR(ValidateExternalNodeDefSyntax(node));
  }
  return absl::OkStatus();
}

absl::Status AddDefaultAttrsToGraphDef(GraphDef* graph_def, const OpRegistryInterface& op_registry,
                                       int node_offset, bool skip_unknown_ops) {
  if (node_offset < 0 || node_offset > graph_def->node_size()) {
    return errors::InvalidArgument("Tried to add default attrs to GraphDef starting at offset ",
                                   node_offset,
                                   " with total nodes in graph: ", graph_def->node_size());
  }
  return AddDefaults(graph_def->mutable_node(), node_offset, op_registry, skip_unknown_ops);
}

absl::Status RemoveNewDefaultAttrsFromGraphDef(
    GraphDef* graph_def, const OpRegistryInterface& consumer_op_registry,
    const OpRegistryInterface& producer_op_registry,
    std::set<std::pair<std::string, std::string>>* op_attr_removed) {
  std::set<std::string> functions;
  for (const FunctionDef& function : graph_def->library().function()) {
    functions.insert(function.signature().name());
  }
  TF_RETURN_IF_ERROR(RemoveNewDefaults(graph_def->mutable_node(), functions, consumer_op_registry,
                                       producer_op_registry, op_attr_removed));
  for (int i = 0; i < graph_def->library().function_size(); ++i) {
    Nodes* const nodes = graph_def->mutable_library()->mutable_function(i)->mutable_node_def();
    TF_RETURN_IF_ERROR(RemoveNewDefaults(nodes, functions, consumer_op_registry,
                                         producer_op_registry, op_attr_removed));
  }
  return absl::OkStatus();
}

void StripDefaultAttributes(const OpRegistryInterface& op_registry, Nodes* nodes) {
  for (NodeDef& node : *nodes) {
    const OpDef* op_def = nullptr;
    if (op_registry.LookUpOpDef(node.op(), &op_def).ok()) StripDefaultsFromNodeDef(*op_def, &node);
  }
}

void OpsUsedByGraph(const GraphDef& graph_def, std::set<std::string>* ops_used_in_graph) {
  std::map<std::string, const FunctionDef*> functions;
  for (const FunctionDef& function : graph_def.library().function()) {
    functions[function.signature().name()] = &function;
  }
  std::set<std::string> seen;
  std::vector<const FunctionDef*> to_visit;
  ops_used_in_graph->clear();
  const auto visit = [&](const Nodes& nodes) {
    for (const NodeDef& node : nodes) {
      if (!seen.insert(node.op()).second) continue;
      if (const auto it = functions.find(node.op()); it != functions.end()) {
        to_visit.push_back(it->second);
      } else {
        ops_used_in_graph->insert(node.op());
      }
    }
  };
  visit(graph_def.node());
  while (!to_visit.empty()) {
    const FunctionDef* const function = to_visit.back();
    to_visit.pop_back();
    visit(function->node_def());
  }
}

absl::Status StrippedOpListForGraph(const GraphDef& graph_def,
                                    const OpRegistryInterface& op_registry,
                                    OpList* stripped_op_list) {
  std::set<std::string> ops;
  OpsUsedByGraph(graph_def, &ops);
  stripped_op_list->Clear();
  for (const std::string& op : ops) {
    const OpDef* op_def = nullptr;
    TF_RETURN_IF_ERROR(op_registry.LookUpOpDef(op, &op_def));
    *stripped_op_list->add_op() = *op_def;
    RemoveDescriptionsFromOpDef(stripped_op_list->mutable_op(stripped_op_list->op_size() - 1));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow
