#include "gradflow/saved_model/missing_ops.h"

#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/node_checks.h"

namespace gradflow::internal {
namespace {

// Returns false, and changes nothing, if the node does not fit the definition or has more than
// *max_tensors inputs and outputs. Subtracts their number from *max_tensors.
bool Wrap(const OpDef& op_def, const std::string& function_name, int64_t* max_tensors,
          NodeDef* node, FunctionDef* function) {
  NodeDef inner = *node;
  AddDefaultsToNodeDef(op_def, &inner);
  DataTypeVector inputs;
  DataTypeVector outputs;
  NameRangeMap output_ranges;
  if (!ValidateNodeDef(inner, op_def).ok() ||
      !InOutTypesForNode(inner, op_def, &inputs, &outputs).ok() ||
      !NameRangesForNode(inner, op_def, nullptr, &output_ranges).ok()) {
    return false;
  }
  int num_inputs = 0;
  while (num_inputs < node->input_size() && !absl::StartsWith(node->input(num_inputs), "^")) {
    ++num_inputs;
  }
  if (static_cast<size_t>(num_inputs) != inputs.size()) return false;
  const auto num_tensors = static_cast<int64_t>(inputs.size() + outputs.size());
  if (num_tensors > *max_tensors) return false;
  *max_tensors -= num_tensors;
  for (const DataTypeVector& types : {inputs, outputs}) {
    for (const DataType type : types) {
      if (IsRefType(type)) return false;
    }
  }
  function->Clear();
  OpDef& signature = *function->mutable_signature();
  signature.set_name(function_name);
  signature.set_is_stateful(op_def.is_stateful());
  inner.clear_input();
  inner.mutable_attr()->erase(kColocationAttr);
  for (int i = 0; i < num_inputs; ++i) {
    OpDef::ArgDef& arg = *signature.add_input_arg();
    arg.set_name(absl::StrCat("input_", i));
    arg.set_type(inputs[i]);
    inner.add_input(arg.name());
  }
  for (const OpDef::ArgDef& output : op_def.output_arg()) {
    const auto range = output_ranges.find(output.name());
    if (range == output_ranges.end()) return false;
    for (int i = range->second.first; i < range->second.second; ++i) {
      OpDef::ArgDef& arg = *signature.add_output_arg();
      arg.set_name(absl::StrCat("output_", i));
      arg.set_type(outputs[i]);
      (*function->mutable_ret())[arg.name()] =
          absl::StrCat(inner.name(), ":", output.name(), ":", i - range->second.first);
    }
  }
  *function->add_node_def() = std::move(inner);
  node->set_op(op_def.is_stateful() ? "StatefulPartitionedCall" : "PartitionedCall");
  node->clear_attr();
  NameAttrList callee;
  callee.set_name(function_name);
  AddNodeAttr("f", callee, node);
  AddNodeAttr("Tin", absl::MakeConstSpan(inputs), node);
  AddNodeAttr("Tout", absl::MakeConstSpan(outputs), node);
  return true;
}

}  // namespace

void WrapMissingOps(const OpList& ops, const Registry& registry, GraphDef* graph) {
  absl::flat_hash_map<absl::string_view, const OpDef*> missing;
  for (const OpDef& op : ops.op()) {
    // The loops of version 1 would be cycles of calls.
    if (absl::EndsWith(op.name(), "NextIteration")) continue;
    if (registry.FindOp(op.name()) == nullptr && ValidateOpDef(op).ok()) {
      missing.emplace(op.name(), &op);
    }
  }
  if (missing.empty()) return;
  // A short attribute of a node may stand for many outputs.
  int64_t max_tensors = int64_t{1} << 16;
  std::set<std::string> names;
  for (const FunctionDef& function : graph->library().function()) {
    names.insert(function.signature().name());
  }
  int next = 0;
  for (NodeDef& node : *graph->mutable_node()) {
    const auto op = missing.find(node.op());
    // A node whose op is the name of a function calls the function.
    if (op == missing.end() || names.count(node.op()) > 0) continue;
    std::string name;
    do {
      name = absl::StrCat("missing_", node.op(), "_", next++);
    } while (!names.insert(name).second);
    FunctionDef function;
    if (Wrap(*op->second, name, &max_tensors, &node, &function)) {
      *graph->mutable_library()->add_function() = std::move(function);
    }
  }
}

}  // namespace gradflow::internal
