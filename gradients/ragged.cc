// Gradients of the ops of ops/ragged. The ops move values, and so they also move the numbers of the
// values, which say where the gradients of the values are.
#include <string>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The inputs [first, first + count).
OutputList Inputs(const Operation& op, int first, int count) {
  OutputList inputs;
  for (int i = first; i < first + count; ++i) inputs.push_back(op.input(i));
  return inputs;
}

// The numbers [first, first + n) of the n rows of `values`.
Output RowNumbers(const Scope& scope, const Output& values, int32_t first) {
  const Output rows = ops::StridedSlice(scope, ops::Shape(scope, values), {0}, {1}, {1},
                                        ops::StridedSlice::ShrinkAxisMask(1));
  return ops::Range(scope, first, ops::Add(scope, rows, first), 1);
}

absl::Status GradientOfRaggedGather(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  const int levels = op.num_inputs() - 2;
  const int outputs = op.num_outputs() - 1;
  const Output values = op.input(levels);
  const ops::RaggedGather numbers(scope, Inputs(op, 0, levels), RowNumbers(scope, values, 0),
                                  op.input(levels + 1), outputs);
  dx->assign(levels, NoGradient());
  dx->push_back(SumRows(scope, OrZeros(scope, op, outputs, dy), numbers.output_dense_values,
                        ops::Shape(scope, values)));
  dx->push_back(NoGradient());
  return scope.status();
}

absl::Status GradientOfRaggedTensorToSparse(const Scope& scope, const Operation& op,
                                            const std::vector<Output>& dy,
                                            std::vector<Output>* dx) {
  const int levels = op.num_inputs() - 1;
  dx->assign(levels, NoGradient());
  dx->push_back(ops::Reshape(scope, dy[1], ops::Shape(scope, op.input(levels))));
  return scope.status();
}

absl::Status GradientOfRaggedTensorToTensor(const Scope& scope, const Operation& op,
                                            const std::vector<Output>& dy,
                                            std::vector<Output>* dx) {
  std::vector<std::string> types;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "row_partition_types", &types));
  const std::vector<absl::string_view> views(types.begin(), types.end());
  const Output values = op.input(1);
  // The outer dimensions of the result. Its places have the number of their value, from 1 on, or 0.
  const Output inner = ops::Sub(scope, ops::Rank(scope, values), 1);
  const Output rank = ops::Sub(scope, ops::Rank(scope, dy[0]), inner);
  const Output outer =
      ops::Slice(scope, ops::Shape(scope, dy[0]), {0}, ops::ExpandDims(scope, rank, 0));
  const ops::RaggedTensorToTensor numbers(scope, outer, RowNumbers(scope, values, 1), 0,
                                          Inputs(op, 3, op.num_inputs() - 3), views);
  const Output row = ops::Slice(scope, ops::Shape(scope, values), {1}, {-1});
  const Output places = ops::ExpandDims(scope, ops::Size(scope, numbers), 0);
  const Output rows = ops::Reshape(scope, dy[0], ops::Concat(scope, {places, row}, 0));
  const Output count = ops::StridedSlice(scope, ops::Shape(scope, values), {0}, {1}, {1},
                                         ops::StridedSlice::ShrinkAxisMask(1));
  const Output sums = ops::UnsortedSegmentSum(scope, rows, ops::Reshape(scope, numbers, {-1}),
                                              ops::Add(scope, count, 1));
  const Output missing =
      ops::StridedSlice(scope, sums, {0}, {1}, {1}, ops::StridedSlice::ShrinkAxisMask(1));
  const Output present =
      ops::StridedSlice(scope, sums, {1}, {0}, {1}, ops::StridedSlice::EndMask(1));
  dx->assign(op.num_inputs(), NoGradient());
  (*dx)[1] = present;
  (*dx)[2] = SumToShapeOf(scope, missing, op.input(2), missing);
  return scope.status();
}

absl::Status GradientOfToVariant(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  const int levels = op.num_inputs() - 1;
  const Output values = op.input(levels);
  const Output splits = levels == 0 ? ops::Const(scope, int64_t{0}) : op.input(0);
  dx->assign(levels, NoGradient());
  dx->push_back(ops::RaggedTensorToVariantGradient(scope, dy[0], splits, ops::Shape(scope, values),
                                                   values.type()));
  return scope.status();
}

absl::Status GradientOfFromVariant(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output encoded = op.input(0);
  const PartialTensorShape& shape = encoded.node()->output_shape(encoded.index());
  if (shape.unknown_rank()) {
    return errors::Unimplemented("the rank of encoded_ragged must be known for the gradient");
  }
  // The splits of the dimensions of `encoded` are uniform and come first. RaggedTensorToVariant
  // needs only the splits after them.
  const int outputs = op.num_outputs() - 1;
  OutputList splits;
  for (int i = shape.dims() > 0 ? shape.dims() - 1 : 0; i < outputs; ++i) {
    splits.push_back(op.output(i));
  }
  const Output rows = ops::RaggedTensorToVariant(scope, splits, OrZeros(scope, op, outputs, dy),
                                                 /*batched_input=*/shape.dims() > 0);
  *dx = {shape.dims() > 1 ? ops::Reshape(scope, rows, ops::Shape(scope, encoded)).output : rows};
  return scope.status();
}

absl::Status GradientOfRaggedFillEmptyRows(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  const ops::RaggedFillEmptyRowsGrad grad(scope, op.output(3), dy[1]);
  *dx = {NoGradient(), grad.d_values, NoGradient(), grad.d_default_value};
  return scope.status();
}

}  // namespace

namespace ragged {

void Register(GradientRegistry& registry) {
  registry.Register("RaggedFillEmptyRows", GradientOfRaggedFillEmptyRows);
  registry.Register("RaggedGather", GradientOfRaggedGather);
  registry.Register("RaggedTensorToSparse", GradientOfRaggedTensorToSparse);
  registry.Register("RaggedTensorToTensor", GradientOfRaggedTensorToTensor);
  registry.Register("RaggedTensorFromVariant", GradientOfFromVariant);
  registry.Register("RaggedTensorToVariant", GradientOfToVariant);
  registry.RegisterNoGradient("RaggedRange");
}

}  // namespace ragged
}  // namespace gradients
}  // namespace gradflow
