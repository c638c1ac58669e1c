#include "gradflow/training/variables.h"

#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/resource_variable_ops.h"
#include "gradflow/ops/state_ops.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {
namespace training {

absl::StatusOr<VariableInfo> InfoOf(const Output& variable) {
  if (variable.node() == nullptr) return errors::InvalidArgument("a variable is an empty output");
  return InfoOf(variable.node()->def());
}

absl::StatusOr<VariableInfo> InfoOf(const NodeDef& node) {
  VariableInfo info;
  info.is_resource = node.op() == "VarHandleOp";
  if (!info.is_resource && node.op() != "VariableV2" && node.op() != "Variable") {
    return errors::InvalidArgument("node '", node.name(), "' (", node.op(), ") is not a variable");
  }
  if (FindNodeAttr(node, "shared_name") != nullptr) {
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "shared_name", &info.name));
  }
  if (info.name.empty()) info.name = node.name();
  GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "dtype", &info.dtype));
  GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "shape", &info.shape));
  // The op Variable writes an unknown shape as a scalar shape.
  if (node.op() == "Variable" && info.shape.dims() == 0) info.shape = PartialTensorShape();
  return info;
}

Output NewVariable(const Scope& scope, absl::string_view name, DataType dtype,
                   const PartialTensorShape& shape, bool is_resource) {
  OpBuilder builder(scope, is_resource ? "VarHandleOp" : "VariableV2");
  builder.Attr("dtype", dtype).Attr("shape", shape).Attr("shared_name", std::string(name));
  const Operation operation = builder.Finish();
  return operation.node() == nullptr ? Output() : Output(operation.node(), 0);
}

Output ReadVariable(const Scope& scope, const Output& variable) {
  const absl::StatusOr<VariableInfo> info = InfoOf(variable);
  if (!info.ok()) {
    scope.UpdateStatus(info.status());
    return Output();
  }
  if (!info->is_resource) return ops::Identity(scope, variable);
  return ops::ReadVariableOp(scope, variable, info->dtype);
}

Operation AssignVariable(const Scope& scope, const Output& variable, const Output& value) {
  const absl::StatusOr<VariableInfo> info = InfoOf(variable);
  if (!info.ok()) {
    scope.UpdateStatus(info.status());
    return Operation();
  }
  if (!info->is_resource) return ops::Assign(scope, variable, value).operation;
  return ops::AssignVariableOp(scope, variable, value).operation;
}

}  // namespace training
}  // namespace gradflow
