// Gradients of the ops of ops/state, and of the ops of ops/array that read variables. The gradient
// of a handle is the gradient of the variable's value.
#include <cstdint>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
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

// The gathered axis is the first axis after the batch dimensions.
absl::Status GradientOfResourceGather(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t batch_dims = 0;
  GRADFLOW_RETURN_IF_ERROR(gradients::GetAttr(op, "batch_dims", &batch_dims));
  const Output indices = op.input(1);
  const Output shape = ops::VariableShape(scope, op.input(0));
  if (batch_dims == 0) {
    *dx = {gradients::SumRows(scope, dy[0], indices, shape), NoGradient()};
  } else {
    const Output dims = gradients::BatchDims(scope, batch_dims, indices);
    *dx = {gradients::GatherBatchesGradient(scope, shape, indices, dims, dims, dy[0]),
           NoGradient()};
  }
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

namespace gradients::state {

void Register(GradientRegistry& registry) {
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
                               "StridedSliceAssign",
                               "VarHandleOp",
                               "VarIsInitializedOp",
                               "Variable",
                               "VariableShape",
                               "VariableV2"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::state

}  // namespace gradflow
