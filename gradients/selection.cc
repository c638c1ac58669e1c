// Gradients of ops that select elements: the selected elements get the gradients.
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

Output AsFlat(const Scope& scope, const Output& x) {
  return ops::Reshape(scope, x, Vector(scope, {-1}));
}

// ---- The largest elements ----

// Adds dy to zeros of the shape of x, at `indices` along the last dimension.
absl::Status GradientOfTopK(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output indices = ops::Cast(scope, op.output(1), DT_INT64);
  const Output shape = ops::Shape(scope, x, ops::Shape::OutType(DT_INT64));
  const Output n = ops::GatherV2(scope, shape, ops::Sub(scope, ops::Rank(scope, x), 1), 0);
  const Output k_rows = ops::Shape(scope, indices);
  // Rows of indices, each offset by the start of its row in x.
  const Output k = ops::GatherV2(scope, k_rows, ops::Sub(scope, ops::Rank(scope, x), 1), 0);
  const Output num_rows =
      ops::Prod(scope,
                ops::Slice(scope, k_rows, Vector(scope, {0}),
                           ops::Sub(scope, ops::Shape(scope, k_rows), Vector(scope, {1}))),
                0);
  const Output rows = ops::Reshape(scope, indices, ops::Pack(scope, {num_rows, k}));
  const Output zero = ops::Const(scope, static_cast<int64_t>(0));
  const Output one = ops::Const(scope, static_cast<int64_t>(1));
  const Output range = ops::Range(scope, zero, ops::Cast(scope, num_rows, DT_INT64), one);
  const Output offsets = ops::ExpandDims(scope, ops::Mul(scope, range, n), 1);
  const Output flat = AsFlat(scope, ops::Add(scope, rows, offsets));
  const Output sums = ops::UnsortedSegmentSum(scope, AsFlat(scope, dy[0]), flat,
                                              ops::Size(scope, x, ops::Size::OutType(DT_INT64)));
  dx->push_back(ops::Reshape(scope, sums, shape));
  return NoGradientForTheRest(scope, op, dx);
}
// Elements that are equal to the result share the gradient.
absl::Status GradientOfNthElement(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output y = ops::ExpandDims(scope, op.output(0), -1);
  const Output is_result = ops::Cast(scope, ops::Equal(scope, x, y), BaseType(x.type()));
  const Output count = ops::Sum(scope, is_result, -1, ops::Sum::KeepDims(true));
  const Output share = ops::Div(scope, ops::ExpandDims(scope, dy[0], -1), count);
  *dx = {ops::Mul(scope, is_result, share), NoGradient()};
  return scope.status();
}

// ---- Scattered extremes ----

// The original element and all updates that are equal to the result share the gradient.
absl::Status GradientOfTensorScatterExtreme(const Scope& scope, const Operation& op,
                                            const std::vector<Output>& dy,
                                            std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output indices = op.input(1);
  const Output updates = op.input(2);
  const Output y = op.output(0);
  const DataType dtype = BaseType(x.type());
  // Index tuples that are out of range and ignored by the op have no gradient.
  std::string policy;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "bad_indices_policy", &policy));
  const auto gather = [&](const Output& tensor) -> Output {
    return ops::GatherNd(scope, tensor, indices, ops::GatherNd::BadIndicesPolicy(policy));
  };
  const Output x_is_result = ops::Cast(scope, ops::Equal(scope, x, y), dtype);
  const Output u_is_result = ops::Cast(scope, ops::Equal(scope, updates, gather(y)), dtype);
  const Output counts = ops::TensorScatterAdd(scope, x_is_result, indices, u_is_result,
                                              ops::TensorScatterAdd::BadIndicesPolicy(policy));
  const Output share = ops::Div(scope, dy[0], counts);
  *dx = {ops::Mul(scope, share, x_is_result), NoGradient(),
         ops::Mul(scope, gather(share), u_is_result)};
  return scope.status();
}

// ---- Rows changed in place ----

absl::Status GradientOfInplaceUpdate(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output indices = op.input(1);
  *dx = {ops::InplaceUpdate(scope, dy[0], indices, ops::ZerosLike(scope, op.input(2))),
         NoGradient(), NoGradient()};
  const Output rows = ops::GatherV2(scope, ops::Shape(scope, op.input(0)), 0, 0);
  // If a row is updated several times, only the last of these updates has a gradient.
  const Output at = ops::FloorMod(scope, indices, rows);
  const Output count = ops::Size(scope, indices);
  const Output numbers = ops::Range(scope, 0, count, 1);
  const Output last = ops::UnsortedSegmentMax(scope, numbers, at, rows);
  const Output is_last = ops::Equal(scope, ops::GatherV2(scope, last, at, 0), numbers);
  const Output g = ops::GatherV2(scope, dy[0], at, 0);
  const Output rank = ops::Rank(scope, g);
  const Output shape =
      ops::SelectV2(scope, ops::Equal(scope, ops::Range(scope, 0, rank, 1), 0), count, 1);
  (*dx)[2] = ops::SelectV2(scope, ops::Reshape(scope, is_last, shape), g, ops::ZerosLike(scope, g));
  return scope.status();
}
template <bool kNegative>
absl::Status GradientOfInplaceAdd(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output rows = ops::GatherV2(scope, ops::Shape(scope, op.input(0)), 0, 0);
  const Output at = ops::FloorMod(scope, op.input(1), rows);
  const Output g = ops::GatherV2(scope, dy[0], at, 0);
  *dx = {dy[0], NoGradient(), kNegative ? Output(ops::Neg(scope, g)) : g};
  return scope.status();
}

// ---- Patches ----

// Sums patches into an image. `numbers` are the patches of an image with the elements 1, 2, ...:
// for each element of a patch, its position in the image, or 0 in the padding. `num_spatial`
// dimensions follow the batch.
Output SumPatches(const Scope& scope, const Output& x, const Output& numbers, const Output& dy,
                  int num_spatial) {
  const Output shape = ops::Shape(scope, x);
  const Output batch = ops::Slice(scope, shape, Vector(scope, {0}), Vector(scope, {1}));
  const Output channels =
      ops::Slice(scope, shape, Vector(scope, {num_spatial + 1}), Vector(scope, {1}));
  const Output spatial = ops::Slice(scope, shape, Vector(scope, {1}), Vector(scope, {num_spatial}));
  const Output flat = AsFlat(scope, numbers);
  const Output count = ops::Shape(scope, flat);
  // Reshapes to [batch, positions, channels], then moves the positions to the front.
  const Output rows = ops::Transpose(
      scope, ops::Reshape(scope, dy, ops::ConcatV2(scope, {batch, count, channels}, 0)),
      Vector(scope, {1, 0, 2}));
  const Output sums =
      ops::UnsortedSegmentSum(scope, rows, ops::Sub(scope, flat, 1), ops::Prod(scope, spatial, 0));
  return ops::Reshape(scope, ops::Transpose(scope, sums, Vector(scope, {1, 0, 2})), shape);
}
// An image whose elements are 1, 2, ....
Output Numbers(const Scope& scope, const Output& x, int num_spatial) {
  const Output shape = ops::Shape(scope, x);
  const Output one = Vector(scope, {1});
  const Output spatial = ops::Slice(scope, shape, one, Vector(scope, {num_spatial}));
  const Output count = ops::Prod(scope, spatial, 0);
  return ops::Reshape(scope, ops::Range(scope, 1, ops::Add(scope, count, 1), 1),
                      ops::ConcatV2(scope, {one, spatial, one}, 0));
}
absl::Status GetInts(const Operation& op, absl::string_view name, std::vector<int>* values) {
  std::vector<int64_t> wide;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, name, &wide));
  values->assign(wide.begin(), wide.end());
  return absl::OkStatus();
}
absl::Status GradientOfExtractImagePatches(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::vector<int> sizes;
  std::vector<int> strides;
  std::vector<int> rates;
  std::string padding;
  GRADFLOW_RETURN_IF_ERROR(GetInts(op, "ksizes", &sizes));
  GRADFLOW_RETURN_IF_ERROR(GetInts(op, "strides", &strides));
  GRADFLOW_RETURN_IF_ERROR(GetInts(op, "rates", &rates));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "padding", &padding));
  const Output x = op.input(0);
  const Output numbers =
      ops::ExtractImagePatches(scope, Numbers(scope, x, 2), sizes, strides, rates, padding);
  dx->push_back(SumPatches(scope, x, numbers, dy[0], 2));
  return scope.status();
}
absl::Status GradientOfExtractVolumePatches(const Scope& scope, const Operation& op,
                                            const std::vector<Output>& dy,
                                            std::vector<Output>* dx) {
  std::vector<int> sizes;
  std::vector<int> strides;
  std::string padding;
  GRADFLOW_RETURN_IF_ERROR(GetInts(op, "ksizes", &sizes));
  GRADFLOW_RETURN_IF_ERROR(GetInts(op, "strides", &strides));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "padding", &padding));
  const Output x = op.input(0);
  const Output numbers =
      ops::ExtractVolumePatches(scope, Numbers(scope, x, 3), sizes, strides, padding);
  dx->push_back(SumPatches(scope, x, numbers, dy[0], 3));
  return scope.status();
}

// ---- Orders ----

absl::Status GradientOfReverseV1(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output axes = AsFlat(scope, ops::Cast(scope, ops::Where(scope, op.input(1)), DT_INT32));
  *dx = {ops::ReverseV2(scope, dy[0], axes), NoGradient()};
  return scope.status();
}
// Shuffles the row indices with the same random numbers, and applies the inverse permutation.
absl::Status GradientOfStatelessShuffle(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output rows = ops::GatherV2(scope, ops::Shape(scope, op.input(0)), 0, 0);
  const Output order = ops::StatelessShuffle(scope, ops::Range(scope, 0, rows, 1), op.input(1),
                                             op.input(2), op.input(3));
  dx->push_back(ops::GatherV2(scope, dy[0], ops::InvertPermutation(scope, order), 0));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfParallelConcat(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = ops::Split(scope, 0, dy[0], op.num_inputs()).output;
  return scope.status();
}

}  // namespace

Output SumRows(const Scope& scope, const Output& dy, const Output& indices, const Output& shape) {
  const Output flat = AsFlat(scope, indices);
  const Output row = ops::Slice(scope, shape, Vector(scope, {1}), Vector(scope, {-1}));
  const Output rows =
      ops::Reshape(scope, dy, ops::ConcatV2(scope, {ops::Shape(scope, flat), row}, 0));
  return ops::UnsortedSegmentSum(scope, rows, flat, ops::GatherV2(scope, shape, 0, 0));
}

Output BatchDims(const Scope& scope, int64_t batch_dims, const Output& indices) {
  const Output count = ops::Const(scope, static_cast<int32_t>(batch_dims));
  if (batch_dims >= 0) return count;
  return ops::Add(scope, ops::Rank(scope, indices), count);
}

// Sums the gathered rows of each batch into the parameter rows of that batch, by making the batch
// part of the row number. Each name stands for any number of dimensions, except n, which is `axis`:
//   shape [batch, outer, n, inner], indices [batch, more], dy [batch, outer, more, inner].
Output GatherBatchesGradient(const Scope& scope, const Output& shape, const Output& indices,
                             const Output& axis, const Output& batch_dims, const Output& dy) {
  const Output rank = ops::Size(scope, shape);
  const Output one = ops::Const(scope, 1);
  const Output after_axis = ops::Add(scope, axis, one);
  const Output more = ops::Sub(scope, ops::Rank(scope, indices), batch_dims);
  const Output after_more = ops::Add(scope, axis, more);
  const auto range = [&](const Input& begin, const Input& end) -> Output {
    return ops::Range(scope, begin, end, 1);
  };
  // Transposes dy to [batch, more, outer, inner].
  const Output order =
      ops::ConcatV2(scope,
                    {range(0, batch_dims), range(axis, after_more), range(batch_dims, axis),
                     range(after_more, ops::Rank(scope, dy))},
                    0);
  const Output permuted = ops::Transpose(scope, dy, order);
  const auto sizes = [&](const Output& axes) -> Output {
    return ops::GatherV2(scope, shape, axes, 0);
  };
  const Output batch = sizes(range(0, batch_dims));
  const Output row =
      ops::ConcatV2(scope, {sizes(range(batch_dims, axis)), sizes(range(after_axis, rank))}, 0);
  const Output n = ops::GatherV2(scope, shape, axis, 0);
  // The row number is the index plus n times the batch number. It may exceed int32.
  const auto wide = [&](const Output& x) -> Output { return ops::Cast(scope, x, DT_INT64); };
  const Output wide_n = wide(n);
  const Output num_batches = ops::Prod(scope, wide(batch), 0);
  const Output numbers_of_batches = ops::Range(scope, int64_t{0}, num_batches, int64_t{1});
  const Output offsets = ops::Mul(scope, numbers_of_batches, wide_n);
  const Output ones = ops::Fill(scope, ops::Reshape(scope, more, Vector(scope, {1})), 1);
  const Output numbers =
      AsFlat(scope, ops::Add(scope, wide(indices),
                             ops::Reshape(scope, offsets, ops::ConcatV2(scope, {batch, ones}, 0))));
  const Output rows =
      ops::Reshape(scope, permuted, ops::ConcatV2(scope, {ops::Shape(scope, numbers), row}, 0));
  const Output sums =
      ops::UnsortedSegmentSum(scope, rows, numbers, ops::Mul(scope, num_batches, wide_n));
  // Reshapes to [batch, n, outer, inner], then transposes to [batch, outer, n, inner].
  const Output front = ops::Reshape(
      scope, sums,
      ops::ConcatV2(scope, {batch, ops::Reshape(scope, n, Vector(scope, {1})), row}, 0));
  const Output after_batch = ops::Add(scope, batch_dims, one);
  const Output back =
      ops::ConcatV2(scope,
                    {range(0, batch_dims), range(after_batch, after_axis),
                     ops::Reshape(scope, batch_dims, Vector(scope, {1})), range(after_axis, rank)},
                    0);
  return ops::Transpose(scope, front, back);
}

}  // namespace gradients

namespace gradients::selection {

void Register(GradientRegistry& registry) {
  registry.Register("TopK", GradientOfTopK);
  registry.Register("TopKV2", GradientOfTopK);
  registry.Register("NthElement", GradientOfNthElement);
  registry.Register("TensorScatterMax", GradientOfTensorScatterExtreme);
  registry.Register("TensorScatterMin", GradientOfTensorScatterExtreme);
  registry.Register("InplaceUpdate", GradientOfInplaceUpdate);
  registry.Register("InplaceAdd", GradientOfInplaceAdd<false>);
  registry.Register("InplaceSub", GradientOfInplaceAdd<true>);
  registry.Register("ExtractImagePatches", GradientOfExtractImagePatches);
  registry.Register("ExtractVolumePatches", GradientOfExtractVolumePatches);
  registry.Register("Reverse", GradientOfReverseV1);
  registry.Register("StatelessShuffle", GradientOfStatelessShuffle);
  registry.Register("ParallelConcat", GradientOfParallelConcat);
}

}  // namespace gradients::selection

}  // namespace gradflow
