#include "gradflow/runtime/plan/op_traits.h"

#include <algorithm>

#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

AttrsByTypes AttrsThatFollowFromTypes(const OpDef& op_def) {
  AttrsByTypes result;
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    // A list of a given length may be empty and then shows no type.
    const auto shows = [&](const OpDef::ArgDef& arg) {
      return arg.number_attr().empty() &&
             (arg.type_attr() == attr.name() || arg.type_list_attr() == attr.name());
    };
    const bool follows = std::any_of(op_def.input_arg().begin(), op_def.input_arg().end(), shows) ||
                         std::any_of(op_def.output_arg().begin(), op_def.output_arg().end(), shows);
    if (follows) continue;
    result.all = false;
    if (attr.type() == "type" || attr.type() == "list(type)") result.types = false;
  }
  return result;
}

bool IsPlaceholder(const Node& node) {
  return node.type_string() == "Placeholder" || node.type_string() == "PlaceholderV2";
}

bool IsPure(const Node& node) {
  if (node.op_def().is_stateful() || node.num_outputs() == 0 || IsPlaceholder(node)) return false;
  if (node.op().functional() != FunctionalOp::kNone) return false;
  // Their outputs may be dead.
  if (ControlFlowOpOf(node) != ControlFlowOp::kNone) return false;
  for (const OpDef::ArgDef& arg : node.op_def().input_arg()) {
    if (arg.is_ref()) return false;
  }
  for (const DataType dtype : node.output_types()) {
    if (IsRefType(dtype) || dtype == DT_RESOURCE) return false;
  }
  return true;
}

}  // namespace gradflow
