// Gradients of the ops of ops/sparse: of the values of sparse tensors, and of dense tensors.
#include <utility>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/data_flow_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/sparse_ops.h"

namespace gradflow {
namespace gradients {
namespace {

Output Int64(const Scope& scope, int64_t value) { return ops::Const(scope, value); }

// The shape of `x` as int64.
Output LongShape(const Scope& scope, const Output& x) {
  return ops::Shape(scope, x, ops::Shape::OutType(DT_INT64));
}

absl::Status GradientOfSparseAdd(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  const ops::SparseAddGrad grad(scope, dy[1], op.input(0), op.input(3), op.output(0));
  *dx = {NoGradient(),    grad.a_val_grad, NoGradient(), NoGradient(),
         grad.b_val_grad, NoGradient(),    NoGradient()};
  return scope.status();
}

absl::Status GradientOfSparseAddGrad(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  // The numbers of the values, from 1 on, instead of the gradients; 0 where there is none.
  const Output size = ops::Size(scope, op.input(0), ops::Size::OutType(DT_INT64));
  const Output end = ops::Add(scope, size, Int64(scope, 1));
  const Output all = ops::Range(scope, Int64(scope, 1), end, Int64(scope, 1));
  const ops::SparseAddGrad numbers(scope, all, op.input(1), op.input(2), op.input(3));
  const Output sums = ops::UnsortedSegmentSum(
      scope, ops::Concat(scope, {OrZeros(scope, op, 0, dy), OrZeros(scope, op, 1, dy)}, 0),
      ops::Concat(scope, {numbers.a_val_grad, numbers.b_val_grad}, 0), end);
  *dx = {ops::StridedSlice(scope, sums, {1}, {0}, {1}, ops::StridedSlice::EndMask(1)), NoGradient(),
         NoGradient(), NoGradient()};
  return scope.status();
}

// SparseSparseMaximum and SparseSparseMinimum. As for Maximum, the first value has the gradient if
// both are equal. No value has it where the result is the 0 of a missing value.
template <typename Compare>
absl::Status GradientOfExtreme(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output shape = op.input(2);
  const Output zeros = ops::ZerosLike(scope, dy[1]);
  const Output threshold = ops::Cast(scope, 0, op.input(1).type());
  // The values of `input` for all indices of the result.
  const auto all = [&](int input) {
    return ops::SparseAdd(scope, op.input(input), op.input(input + 1), shape, op.output(0), zeros,
                          shape, threshold)
        .sum_values;
  };
  const Output first = Compare(scope, all(0), all(3));
  const auto grad = [&](const Output& a, const Output& b) {
    return ops::SparseAddGrad(scope, ops::SelectV2(scope, first, a, b), op.input(0), op.input(3),
                              op.output(0));
  };
  *dx = {NoGradient(), grad(dy[1], zeros).a_val_grad, NoGradient(),
         NoGradient(), grad(zeros, dy[1]).b_val_grad, NoGradient()};
  return scope.status();
}

absl::Status GradientOfSparseTensorDenseAdd(const Scope& scope, const Operation& op,
                                            const std::vector<Output>& dy,
                                            std::vector<Output>* dx) {
  *dx = {NoGradient(), ops::GatherNd(scope, dy[0], op.input(0)), NoGradient(), dy[0]};
  return scope.status();
}

absl::Status GradientOfSparseReorder(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  // Where each value comes from.
  const Output size = ops::Size(scope, op.input(1));
  const ops::SparseReorder order(scope, op.input(0), ops::Range(scope, 0, size, 1), op.input(2));
  const Output inverse = ops::InvertPermutation(scope, order.output_values);
  *dx = {NoGradient(), ops::Gather(scope, dy[1], inverse), NoGradient()};
  return scope.status();
}

absl::Status GradientOfSparseSlice(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {NoGradient(), ops::SparseSliceGrad(scope, dy[1], op.input(0), op.input(3), op.output(0)),
         NoGradient(), NoGradient(), NoGradient()};
  return scope.status();
}

absl::Status GradientOfSparseToDense(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  // One row for each value; the indices may be a vector or a scalar.
  const Output rank = ops::ExpandDims(scope, ops::Size(scope, op.input(1)), 0);
  const Output indices =
      ops::Reshape(scope, op.input(0), ops::Concat(scope, {ops::Const(scope, {-1}), rank}, 0));
  const Output all = ops::GatherNd(scope, dy[0], indices);
  const Output values = op.input(2);
  const int dims = values.node()->output_shape(values.index()).dims();
  const Output sum = ops::Sum(scope, all, 0);
  const Output rest = ops::Sub(scope, ops::Sum(scope, ops::Reshape(scope, dy[0], {-1}), 0), sum);
  Output grad = all;
  if (dims == 0) {
    grad = sum;
  } else if (dims < 0) {
    return errors::Unimplemented("the rank of sparse_values must be known for the gradient");
  }
  *dx = {NoGradient(), NoGradient(), grad, rest};
  return scope.status();
}

absl::Status GradientOfSparseFillEmptyRows(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  const ops::SparseFillEmptyRowsGrad grad(scope, op.output(3), dy[1]);
  *dx = {NoGradient(), grad.d_values, NoGradient(), grad.d_default_value};
  return scope.status();
}

absl::Status GradientOfSparseReduceSum(const Scope& scope, const Operation& op,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output shape = op.input(2);
  const Output rank = ops::Size(scope, shape);
  const Output axes =
      ops::FloorMod(scope, ops::Add(scope, ops::Reshape(scope, op.input(3), {-1}), rank), rank);
  const Output ones =
      ops::Add(scope, ops::ZerosLike(scope, ops::Cast(scope, axes, DT_INT64)), Int64(scope, 1));
  // The shape with 1 for the dimensions that are reduced.
  const Output kept =
      ops::DynamicStitch(scope, {ops::Range(scope, 0, rank, 1), axes}, {shape, ones});
  const Output reduced = ops::Reshape(scope, dy[0], kept);
  const Output places = ops::Minimum(scope, op.input(0), ops::Sub(scope, kept, Int64(scope, 1)));
  *dx = {NoGradient(), ops::GatherNd(scope, reduced, places), NoGradient(), NoGradient()};
  return scope.status();
}

// The dense tensor of an elementwise op, and where each value finds its element.
struct Broadcasted {
  // The shape of the dense tensor, with ones in front of it.
  Output shape;
  Output places;
  Output elements;
};
Broadcasted BroadcastDense(const Scope& scope, const Operation& op) {
  const Output dense = op.input(3);
  const Output dense_shape = LongShape(scope, dense);
  const Output missing = ops::Sub(scope, ops::Size(scope, op.input(2)), ops::Rank(scope, dense));
  const Output ones = ops::Fill(scope, ops::ExpandDims(scope, missing, 0), Int64(scope, 1));
  Broadcasted result;
  result.shape = ops::Concat(scope, {ones, dense_shape}, 0);
  result.places = ops::Minimum(scope, op.input(0), ops::Sub(scope, result.shape, Int64(scope, 1)));
  result.elements = ops::GatherNd(scope, ops::Reshape(scope, dense, result.shape), result.places);
  return result;
}

// Sums `grads`, one for each value, to the elements of the dense tensor.
Output SumToDense(const Scope& scope, const Operation& op, const Broadcasted& dense,
                  const Output& grads) {
  const Output sums = ops::ScatterNd(scope, dense.places, grads, dense.shape);
  return ops::Reshape(scope, sums, LongShape(scope, op.input(3)));
}

absl::Status GradientOfCwiseAdd(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Broadcasted dense = BroadcastDense(scope, op);
  *dx = {NoGradient(), dy[0], NoGradient(), SumToDense(scope, op, dense, dy[0])};
  return scope.status();
}

absl::Status GradientOfCwiseMul(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Broadcasted dense = BroadcastDense(scope, op);
  *dx = {NoGradient(), ops::Mul(scope, dy[0], Conjugate(scope, dense.elements)), NoGradient(),
         SumToDense(scope, op, dense, ops::Mul(scope, dy[0], Conjugate(scope, op.input(1))))};
  return scope.status();
}

absl::Status GradientOfCwiseDiv(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Broadcasted dense = BroadcastDense(scope, op);
  const Output quotient = ops::RealDiv(scope, dy[0], Conjugate(scope, dense.elements));
  const Output grads = ops::Neg(scope, ops::Mul(scope, quotient, Conjugate(scope, op.output(0))));
  *dx = {NoGradient(), quotient, NoGradient(), SumToDense(scope, op, dense, grads)};
  return scope.status();
}

absl::Status GradientOfSparseTensorDenseMatMul(const Scope& scope, const Operation& op,
                                               const std::vector<Output>& dy,
                                               std::vector<Output>* dx) {
  bool adjoint_a = false;
  bool adjoint_b = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adjoint_a", &adjoint_a));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adjoint_b", &adjoint_b));
  const auto adjoint = [&](const Output& x) {
    return Conjugate(scope, ops::Transpose(scope, x, {1, 0}));
  };
  const Output db =
      ops::SparseTensorDenseMatMul(scope, op.input(0), op.input(1), op.input(2), dy[0],
                                   ops::SparseTensorDenseMatMul::AdjointA(!adjoint_a));
  const ops::Unstack parts(scope, op.input(0), 2, ops::Unstack::Axis(1));
  const Output rows = ops::Gather(scope, dy[0], parts[adjoint_a ? 1 : 0]);
  const Output b = adjoint_b ? adjoint(op.input(3)) : op.input(3);
  const Output columns = ops::Gather(scope, b, parts[adjoint_a ? 0 : 1]);
  const Output da = ops::Sum(scope, ops::Mul(scope, rows, Conjugate(scope, columns)), 1);
  *dx = {NoGradient(), adjoint_a ? Conjugate(scope, da) : da, NoGradient(),
         adjoint_b ? adjoint(db) : db};
  return scope.status();
}

absl::Status GradientOfSparseSoftmax(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output y = op.output(0);
  const Output sums = ops::SparseReduceSum(scope, op.input(0), ops::Mul(scope, y, dy[0]),
                                           op.input(2), {-1}, ops::SparseReduceSum::KeepDims(true));
  const Output difference =
      ops::SparseDenseCwiseAdd(scope, op.input(0), dy[0], op.input(2), ops::Neg(scope, sums));
  *dx = {NoGradient(), ops::Mul(scope, difference, y), NoGradient()};
  return scope.status();
}

}  // namespace

namespace sparse {

void Register(GradientRegistry& registry) {
  registry.Register("SparseAdd", GradientOfSparseAdd);
  registry.Register("SparseAddGrad", GradientOfSparseAddGrad);
  registry.Register("SparseDenseCwiseAdd", GradientOfCwiseAdd);
  registry.Register("SparseDenseCwiseDiv", GradientOfCwiseDiv);
  registry.Register("SparseDenseCwiseMul", GradientOfCwiseMul);
  registry.Register("SparseFillEmptyRows", GradientOfSparseFillEmptyRows);
  registry.Register("SparseReduceSum", GradientOfSparseReduceSum);
  registry.Register("SparseReorder", GradientOfSparseReorder);
  registry.Register("SparseSlice", GradientOfSparseSlice);
  registry.Register("SparseSoftmax", GradientOfSparseSoftmax);
  registry.Register("SparseSparseMaximum", GradientOfExtreme<ops::GreaterEqual>);
  registry.Register("SparseSparseMinimum", GradientOfExtreme<ops::LessEqual>);
  registry.Register("SparseTensorDenseAdd", GradientOfSparseTensorDenseAdd);
  registry.Register("SparseTensorDenseMatMul", GradientOfSparseTensorDenseMatMul);
  registry.Register("SparseToDense", GradientOfSparseToDense);
  for (const char* const op : {"SparseConcat", "SparseReshape"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace sparse
}  // namespace gradients
}  // namespace gradflow
