#include "gradflow/training/variables.h"

#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/resource_variable_ops.h"
#include "gradflow/ops/state_ops.h"

namespace gradflow {
namespace training {

absl::StatusOr<VariableInfo> InfoOf(const Output& variable) {
  if (variable.node() == nullptr) return errors::InvalidArgument("a variable is an empty output");
  const Node& node = *variable.node();
  VariableInfo info;
  info.is_resource = node.type_string() == "VarHandleOp";
  if (!info.is_resource && node.type_string() != "VariableV2" && node.type_string() != "Variable") {
    return errors::InvalidArgument("node '", node.name(), "' (", node.type_string(),
                                   ") is not a variable");
  }
  GRADFLOW_RETURN_IF_ERROR(node.GetAttr("shared_name", &info.name));
  if (info.name.empty()) info.name = node.name();
  GRADFLOW_RETURN_IF_ERROR(node.GetAttr("dtype", &info.dtype));
  info.shape = PartialTensorShape();
  GRADFLOW_RETURN_IF_ERROR(node.GetAttr("shape", &info.shape));
  // Variable states an unknown shape as that of a scalar.
  if (node.type_string() == "Variable" && info.shape.dims() == 0) info.shape = PartialTensorShape();
  return info;
}

Output NewVariable(const Scope& scope, absl::string_view name, DataType dtype,
                   const PartialTensorShape& shape, bool is_resource) {
  OpRecorder recorder(scope, is_resource ? "VarHandleOp" : "VariableV2");
  recorder.Attr("dtype", dtype).Attr("shape", shape).Attr("shared_name", std::string(name));
  const Operation operation = recorder.Finish();
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
