// Gradients of the ops of ops/linalg.
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/register.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The product of two matrices, each transposed or not: of real numbers by MatMul, and by
// BatchMatMulV2, which conjugates what it transposes, for batches.
Output Product(const Scope& scope, bool batches, const Output& a, bool transpose_a, const Output& b,
               bool transpose_b) {
  if (batches) {
    return ops::BatchMatMulV2(scope, a, b, ops::BatchMatMulV2::AdjX(transpose_a).AdjY(transpose_b));
  }
  return ops::MatMul(scope, a, b, ops::MatMul::TransposeA(transpose_a).TransposeB(transpose_b));
}

// For y = op(a) op(b). MatMul transposes without conjugation, so its factors are conjugated first.
absl::Status AppendProducts(const Scope& scope, bool batches, const Output& a, bool transposed_a,
                            const Output& b, bool transposed_b, const Output& dy,
                            std::vector<Output>* dx) {
  if (!transposed_a) {
    dx->push_back(Product(scope, batches, dy, false, b, !transposed_b));
  } else {
    dx->push_back(Product(scope, batches, b, transposed_b, dy, true));
  }
  if (!transposed_b) {
    dx->push_back(Product(scope, batches, a, !transposed_a, dy, false));
  } else {
    dx->push_back(Product(scope, batches, dy, true, a, transposed_a));
  }
  return scope.status();
}

absl::Status GradientOfMatMul(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool transposed_a = false;
  bool transposed_b = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "transpose_a", &transposed_a));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "transpose_b", &transposed_b));
  return AppendProducts(scope, /*batches=*/false, Conjugate(scope, op.input(0)), transposed_a,
                        Conjugate(scope, op.input(1)), transposed_b, dy[0], dx);
}

// Sums over the dimensions of batches along which `x` was broadcast.
Output SumBatches(const Scope& scope, const Output& gradient, const Output& x,
                  const Output& other) {
  const Output shape = ops::Shape(scope, x);
  const Output zero = Vector(scope, {0});
  const auto batch = [&](const Output& tensor) {
    const Output tensor_shape = ops::Shape(scope, tensor);
    const Output size = ops::Sub(scope, ops::Shape(scope, tensor_shape), Vector(scope, {2}));
    return Output(ops::Slice(scope, tensor_shape, zero, size));
  };
  const auto axes = ops::BroadcastGradientArgs(scope, batch(x), batch(other));
  return ops::Reshape(scope, ops::Sum(scope, gradient, axes.r0), shape);
}

absl::Status GradientOfBatchMatMul(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool adjoint_x = false;
  bool adjoint_y = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adj_x", &adjoint_x));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adj_y", &adjoint_y));
  const Output x = op.input(0);
  const Output y = op.input(1);
  GRADFLOW_RETURN_IF_ERROR(
      AppendProducts(scope, /*batches=*/true, x, adjoint_x, y, adjoint_y, dy[0], dx));
  if (op.node()->type_string() != "BatchMatMul") {
    *dx = {SumBatches(scope, (*dx)[0], x, y), SumBatches(scope, (*dx)[1], y, x)};
  }
  return scope.status();
}

absl::Status GradientOfCross(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  *dx = {ops::Cross(scope, op.input(1), dy[0]), ops::Cross(scope, dy[0], op.input(0))};
  return scope.status();
}

}  // namespace
}  // namespace gradients

void RegisterLinalgGradients(GradientRegistry& registry) {
  using namespace gradients;  // NOLINT(google-build-using-namespace)
  registry.Register("MatMul", GradientOfMatMul);
  registry.Register("BatchMatMul", GradientOfBatchMatMul);
  registry.Register("BatchMatMulV2", GradientOfBatchMatMul);
  registry.Register("Cross", GradientOfCross);
}

}  // namespace gradflow
