// Gradients of the ops of ops/state, and of those of ops/array that read variables. The gradient of
// a handle is that of the variable's value.
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/gradients/register.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/resource_variable_ops.h"

namespace gradflow {
namespace {

absl::Status GradientOfReadVariable(const Scope& scope, const Operation&,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {dy[0]};
  return scope.status();
}

// Sums the slices of dy, each in the row that it was gathered from.
absl::Status GradientOfResourceGather(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t batch_dims = 0;
  GRADFLOW_RETURN_IF_ERROR(op.node()->GetAttr("batch_dims", &batch_dims));
  if (batch_dims != 0) {
    return errors::Unimplemented("the gradient with batch_dims ", batch_dims,
                                 " is not there; expected 0");
  }
  const auto vector = [&](int value) { return Output(ops::Const(scope, value, {1})); };
  const Output shape = ops::VariableShape(scope, op.input(0));
  const Output flat = ops::Reshape(scope, op.input(1), vector(-1));
  const Output row = ops::Slice(scope, shape, vector(1), vector(-1));
  const Output rows =
      ops::Reshape(scope, dy[0], ops::ConcatV2(scope, {ops::Shape(scope, flat), row}, 0));
  const Output num_rows = ops::Squeeze(scope, ops::Slice(scope, shape, vector(0), vector(1)));
  *dx = {ops::UnsortedSegmentSum(scope, rows, flat, num_rows), NoGradient()};
  return scope.status();
}

absl::Status GradientOfResourceGatherNd(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output shape =
      ops::VariableShape(scope, op.input(0), ops::VariableShape::OutType(op.input(1).type()));
  *dx = {ops::ScatterNd(scope, op.input(1), dy[0], shape), NoGradient()};
  return scope.status();
}

}  // namespace

void RegisterStateGradients(GradientRegistry& registry) {
  registry.Register("ReadVariableOp", GradientOfReadVariable);
  registry.Register("ResourceGather", GradientOfResourceGather);
  registry.Register("ResourceGatherNd", GradientOfResourceGatherNd);
  for (const char* const op : {"Assign",
                               "AssignAdd",
                               "AssignAddVariableOp",
                               "AssignSub",
                               "AssignSubVariableOp",
                               "AssignVariableOp",
                               "CountUpTo",
                               "DestroyResourceOp",
                               "DisableCopyOnRead",
                               "IsVariableInitialized",
                               "ResourceCountUpTo",
                               "ResourceScatterAdd",
                               "ResourceScatterDiv",
                               "ResourceScatterMax",
                               "ResourceScatterMin",
                               "ResourceScatterMul",
                               "ResourceScatterNdAdd",
                               "ResourceScatterNdMax",
                               "ResourceScatterNdMin",
                               "ResourceScatterNdSub",
                               "ResourceScatterNdUpdate",
                               "ResourceScatterSub",
                               "ResourceScatterUpdate",
                               "ScatterAdd",
                               "ScatterDiv",
                               "ScatterMax",
                               "ScatterMin",
                               "ScatterMul",
                               "ScatterNdAdd",
                               "ScatterNdMax",
                               "ScatterNdMin",
                               "ScatterNdSub",
                               "ScatterNdUpdate",
                               "ScatterSub",
                               "ScatterUpdate",
                               "VarHandleOp",
                               "VarIsInitializedOp",
                               "Variable",
                               "VariableShape",
                               "VariableV2"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradflow
