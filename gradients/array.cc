// Gradients of ops that move or copy elements, of checks such as CheckNumerics, of Print, and of
// QuantizeAndDequantize. If an op moves elements, its gradient moves them back.
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

absl::Status GradientOfIdentity(const Scope& scope, const Operation&, const std::vector<Output>& dy,
                                std::vector<Output>* dx) {
  *dx = dy;
  return scope.status();
}
// Adds an Identity node, as TensorFlow's C++ API does, because programs look for this node.
absl::Status GradientByIdentity(const Scope& scope, const Operation&, const std::vector<Output>& dy,
                                std::vector<Output>* dx) {
  dx->push_back(ops::Identity(scope, dy[0]));
  return scope.status();
}
absl::Status GradientOfPreventGradient(const Scope&, const Operation& op,
                                       const std::vector<Output>&, std::vector<Output>*) {
  std::string message;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "message", &message));
  return errors::InvalidArgument("the gradient is prevented: ",
                                 message.empty() ? "no reason is given" : message);
}
absl::Status GradientOfCheckNumerics(const Scope& scope, const Operation&,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::CheckNumerics(
      scope, dy[0], "Not a number (NaN) or infinity (Inf) values detected in gradient."));
  return scope.status();
}

// For ops that only change the shape of their first input. The other inputs are sizes or axes.
absl::Status GradientOfReshape(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::Reshape(scope, dy[0], ops::Shape(scope, op.input(0))));
  return NoGradientForTheRest(scope, op, dx);
}
// Reverses the gradient along the same axes.
absl::Status GradientOfReverse(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::Reverse(scope, dy[0], op.input(1)), NoGradient()};
  return scope.status();
}
absl::Status GradientOfRoll(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  dx->push_back(ops::Roll(scope, dy[0], ops::Neg(scope, op.input(1)), op.input(2)));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfReverseSequence(const Scope& scope, const Operation& op,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t seq_dim = 0;
  int64_t batch_dim = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "seq_dim", &seq_dim));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "batch_dim", &batch_dim));
  *dx = {ops::ReverseSequence(scope, dy[0], op.input(1), seq_dim,
                              ops::ReverseSequence::BatchDim(batch_dim)),
         NoGradient()};
  return scope.status();
}
absl::Status GradientOfTranspose(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::Transpose(scope, dy[0], ops::InvertPermutation(scope, op.input(1))), NoGradient()};
  return scope.status();
}
absl::Status GradientOfConjugateTranspose(const Scope& scope, const Operation& op,
                                          const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::ConjugateTranspose(scope, dy[0], ops::InvertPermutation(scope, op.input(1))),
         NoGradient()};
  return scope.status();
}

// ---- Lists ----

absl::Status GradientOfPack(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  int64_t axis = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "axis", &axis));
  const auto parts = ops::Unpack(scope, dy[0], op.num_inputs(), ops::Unpack::Axis(axis));
  *dx = parts.output;
  return scope.status();
}
absl::Status GradientOfUnpack(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t axis = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "axis", &axis));
  std::vector<Output> parts;
  for (int i = 0; i < op.num_outputs(); ++i) parts.push_back(OrZeros(scope, op, i, dy));
  dx->push_back(ops::Pack(scope, parts, ops::Pack::Axis(axis)));
  return scope.status();
}
// Concatenates the gradients of all outputs.
Output Join(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
            const Output& axis) {
  if (op.num_outputs() == 1) return dy[0];
  std::vector<Output> parts;
  for (int i = 0; i < op.num_outputs(); ++i) parts.push_back(OrZeros(scope, op, i, dy));
  return ops::ConcatV2(scope, parts, axis);
}
absl::Status GradientOfSplit(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  *dx = {NoGradient(), Join(scope, op, dy, op.input(0))};
  return scope.status();
}
absl::Status GradientOfSplitV(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {Join(scope, op, dy, op.input(2)), NoGradient(), NoGradient()};
  return scope.status();
}
// Slices dy at the offsets of the inputs along `axis`.
absl::Status SliceParts(const Scope& scope, const Output& axis, const std::vector<Output>& inputs,
                        const Output& dy, std::vector<Output>* dx) {
  if (inputs.size() == 1) {
    dx->push_back(dy);
    return scope.status();
  }
  const auto shapes = ops::ShapeN(scope, inputs);
  const Output rank = ops::Rank(scope, inputs[0]);
  const Output dim =
      ops::FloorMod(scope, ops::Add(scope, ops::Cast(scope, axis, DT_INT32), rank), rank);
  const auto offsets = ops::ConcatOffset(scope, dim, shapes.output);
  for (size_t i = 0; i < inputs.size(); ++i) {
    dx->push_back(ops::Slice(scope, dy, offsets.offset[i], shapes.output[i]));
  }
  return scope.status();
}
absl::Status GradientOfConcatV2(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::vector<Output> inputs;
  const int axis = op.num_inputs() - 1;
  for (int i = 0; i < axis; ++i) inputs.push_back(op.input(i));
  GRADFLOW_RETURN_IF_ERROR(SliceParts(scope, op.input(axis), inputs, dy[0], dx));
  dx->push_back(NoGradient());
  return scope.status();
}
absl::Status GradientOfConcat(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::vector<Output> inputs;
  for (int i = 1; i < op.num_inputs(); ++i) inputs.push_back(op.input(i));
  dx->push_back(NoGradient());
  return SliceParts(scope, op.input(0), inputs, dy[0], dx);
}

// ---- Parts ----

absl::Status GradientOfSlice(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  const Output begin = op.input(1);
  const DataType dtype = begin.type();
  const Output shape = ops::Shape(scope, op.input(0), ops::Shape::OutType(dtype));
  const Output size = ops::Shape(scope, op.output(0), ops::Shape::OutType(dtype));
  const Output after = ops::Sub(scope, ops::Sub(scope, shape, begin), size);
  const Output paddings = ops::Pack(scope, {begin, after}, ops::Pack::Axis(1));
  dx->push_back(ops::Pad(scope, dy[0], paddings));
  return NoGradientForTheRest(scope, op, dx);
}

// Casts an index to int32 unless it is int32 or int64, the types that a shape tensor may have.
Output Index(const Scope& scope, const Output& index) {
  return index.type() == DT_INT64 || index.type() == DT_INT32
             ? index
             : Output(ops::Cast(scope, index, DT_INT32));
}

struct Masks {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;
  int64_t shrink_axis = 0;
};
absl::Status GetMasks(const Operation& op, Masks* masks) {
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "begin_mask", &masks->begin));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "end_mask", &masks->end));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "ellipsis_mask", &masks->ellipsis));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "new_axis_mask", &masks->new_axis));
  return GetAttr(op, "shrink_axis_mask", &masks->shrink_axis);
}
absl::Status GradientOfStridedSlice(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  Masks masks;
  GRADFLOW_RETURN_IF_ERROR(GetMasks(op, &masks));
  const Output begin = Index(scope, op.input(1));
  const Output shape = ops::Shape(scope, op.input(0), ops::Shape::OutType(begin.type()));
  dx->push_back(ops::StridedSliceGrad(scope, shape, begin, Index(scope, op.input(2)),
                                      Index(scope, op.input(3)), dy[0],
                                      ops::StridedSliceGrad::BeginMask(masks.begin)
                                          .EndMask(masks.end)
                                          .EllipsisMask(masks.ellipsis)
                                          .NewAxisMask(masks.new_axis)
                                          .ShrinkAxisMask(masks.shrink_axis)));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfStridedSliceGrad(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  Masks masks;
  GRADFLOW_RETURN_IF_ERROR(GetMasks(op, &masks));
  dx->assign(4, NoGradient());
  dx->push_back(ops::StridedSlice(scope, dy[0], op.input(1), op.input(2), op.input(3),
                                  ops::StridedSlice::BeginMask(masks.begin)
                                      .EndMask(masks.end)
                                      .EllipsisMask(masks.ellipsis)
                                      .NewAxisMask(masks.new_axis)
                                      .ShrinkAxisMask(masks.shrink_axis)));
  return scope.status();
}

absl::Status GradientOfPad(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  const Output paddings = op.input(1);
  const Output before = ops::Unpack(scope, paddings, 2, ops::Unpack::Axis(1)).output[0];
  const Output size = ops::Shape(scope, op.input(0), ops::Shape::OutType(paddings.type()));
  dx->push_back(ops::Slice(scope, dy[0], before, size));
  if (op.num_inputs() == 3) {
    // The gradient of the padding value is the sum of dy outside the inner part.
    const Output ones = ops::OnesLike(scope, (*dx)[0]);
    const Output zero = Scalar(scope, dy[0].type(), 0);
    const Output is_inner = ops::NotEqual(scope, ops::Pad(scope, ones, paddings), zero);
    const Output border = ops::SelectV2(scope, is_inner, zero, dy[0]);
    dx->push_back(NoGradient());
    dx->push_back(ops::Sum(scope, border, ops::Range(scope, 0, ops::Rank(scope, border), 1)));
    return scope.status();
  }
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfMirrorPad(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string mode;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "mode", &mode));
  *dx = {ops::MirrorPadGrad(scope, dy[0], op.input(1), mode), NoGradient()};
  return scope.status();
}
absl::Status GradientOfMirrorPadGrad(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string mode;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "mode", &mode));
  *dx = {ops::MirrorPad(scope, dy[0], op.input(1), mode), NoGradient()};
  return scope.status();
}

// ---- Copies ----

// Reshapes dy to [m0, n0, m1, n1, ...], and sums over the multiples m0, m1, ....
absl::Status GradientOfTile(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Output multiples = op.input(1);
  const Output shape = ops::Shape(scope, op.input(0), ops::Shape::OutType(multiples.type()));
  const Output split = ops::Reshape(scope, ops::Pack(scope, {multiples, shape}, ops::Pack::Axis(1)),
                                    Vector(scope, {-1}));
  const Output axes = ops::Range(scope, 0, ops::Size(scope, split), 2);
  const Output sums = ops::Sum(scope, ops::Reshape(scope, dy[0], split), axes);
  *dx = {ops::Reshape(scope, sums, shape), NoGradient()};
  return scope.status();
}
absl::Status GradientOfTileGrad(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::Tile(scope, dy[0], op.input(1)), NoGradient()};
  return scope.status();
}
absl::Status GradientOfBroadcastTo(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {SumToShapeOf(scope, dy[0], op.input(0), op.output(0)), NoGradient()};
  return scope.status();
}
absl::Status GradientOfFill(const Scope& scope, const Operation&, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  *dx = {NoGradient(), ops::Sum(scope, dy[0], ops::Range(scope, 0, ops::Rank(scope, dy[0]), 1))};
  return scope.status();
}

// ---- Gather and scatter ----

absl::Status GradientOfGather(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {SumRows(scope, dy[0], op.input(1), ops::Shape(scope, op.input(0))), NoGradient()};
  return scope.status();
}
// Moves the dimensions of the indices to the front of dy, sums rows with equal indices, and moves
// the summed dimension back to `axis`.
absl::Status GradientOfGatherV2(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t batch_dims = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "batch_dims", &batch_dims));
  const Output params = op.input(0);
  const Output rank = ops::Rank(scope, params);
  const Output one = ops::Const(scope, 1);
  const Output axis = ops::Reshape(
      scope,
      ops::FloorMod(scope, ops::Add(scope, ops::Cast(scope, op.input(2), DT_INT32), rank), rank),
      Vector(scope, {}));
  if (batch_dims != 0) {
    const Output dims = BatchDims(scope, batch_dims, op.input(1));
    *dx = {GatherBatchesGradient(scope, ops::Shape(scope, params), op.input(1), axis, dims, dy[0]),
           NoGradient(), NoGradient()};
    return scope.status();
  }
  const Output shape = ops::Shape(scope, params);
  const Output index_rank = ops::Rank(scope, op.input(1));
  const Output after_indices = ops::Add(scope, axis, index_rank);
  const Output dy_to_front =
      ops::ConcatV2(scope,
                    {ops::Range(scope, axis, after_indices, 1), ops::Range(scope, 0, axis, 1),
                     ops::Range(scope, after_indices, ops::Rank(scope, dy[0]), 1)},
                    0);
  const Output axis_to_front =
      ops::ConcatV2(scope,
                    {ops::Reshape(scope, axis, Vector(scope, {1})), ops::Range(scope, 0, axis, 1),
                     ops::Range(scope, ops::Add(scope, axis, one), rank, 1)},
                    0);
  const Output rows = SumRows(scope, ops::Transpose(scope, dy[0], dy_to_front), op.input(1),
                              ops::GatherV2(scope, shape, axis_to_front, 0));
  *dx = {ops::Transpose(scope, rows, ops::InvertPermutation(scope, axis_to_front)), NoGradient(),
         NoGradient()};
  return scope.status();
}
// Gets the op's policy for index tuples that are out of range. The gradient uses the same policy.
absl::Status GetPolicy(const Operation& op, std::string* policy) {
  return GetAttr(op, "bad_indices_policy", policy);
}
absl::Status GradientOfGatherNd(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string policy;
  GRADFLOW_RETURN_IF_ERROR(GetPolicy(op, &policy));
  const Output indices = Index(scope, op.input(1));
  const Output shape = ops::Shape(scope, op.input(0), ops::Shape::OutType(indices.type()));
  *dx = {ops::ScatterNd(scope, indices, dy[0], shape, ops::ScatterNd::BadIndicesPolicy(policy)),
         NoGradient()};
  return scope.status();
}
absl::Status GradientOfScatterNd(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string policy;
  GRADFLOW_RETURN_IF_ERROR(GetPolicy(op, &policy));
  const auto attrs = ops::GatherNd::BadIndicesPolicy(policy);
  *dx = {NoGradient(), ops::GatherNd(scope, dy[0], op.input(0), attrs), NoGradient()};
  return scope.status();
}

// ---- Space and batch ----

absl::Status GradientOfSpaceToDepth(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t block = 0;
  std::string format;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "block_size", &block));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "data_format", &format));
  dx->push_back(ops::DepthToSpace(scope, dy[0], block, ops::DepthToSpace::DataFormat(format)));
  return scope.status();
}
absl::Status GradientOfDepthToSpace(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t block = 0;
  std::string format;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "block_size", &block));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "data_format", &format));
  dx->push_back(ops::SpaceToDepth(scope, dy[0], block, ops::SpaceToDepth::DataFormat(format)));
  return scope.status();
}
absl::Status GradientOfSpaceToBatch(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t block = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "block_size", &block));
  *dx = {ops::BatchToSpace(scope, dy[0], op.input(1), block), NoGradient()};
  return scope.status();
}
absl::Status GradientOfBatchToSpace(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t block = 0;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "block_size", &block));
  *dx = {ops::SpaceToBatch(scope, dy[0], op.input(1), block), NoGradient()};
  return scope.status();
}
absl::Status GradientOfSpaceToBatchND(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::BatchToSpaceND(scope, dy[0], op.input(1), op.input(2)), NoGradient(), NoGradient()};
  return scope.status();
}
absl::Status GradientOfBatchToSpaceND(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::SpaceToBatchND(scope, dy[0], op.input(1), op.input(2)), NoGradient(), NoGradient()};
  return scope.status();
}

// ---- Diagonals ----

absl::Status GradientOfDiag(const Scope& scope, const Operation&, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  dx->push_back(ops::DiagPart(scope, dy[0]));
  return scope.status();
}
absl::Status GradientOfDiagPart(const Scope& scope, const Operation&, const std::vector<Output>& dy,
                                std::vector<Output>* dx) {
  dx->push_back(ops::Diag(scope, dy[0]));
  return scope.status();
}
absl::Status GradientOfMatrixBandPart(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::MatrixBandPart(scope, dy[0], op.input(1), op.input(2)));
  return NoGradientForTheRest(scope, op, dx);
}

absl::Status GradientOfMatrixDiag(const Scope& scope, const Operation&,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::MatrixDiagPart(scope, dy[0]));
  return scope.status();
}
absl::Status GradientOfMatrixDiagPart(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::MatrixSetDiag(scope, ops::ZerosLike(scope, op.input(0)), dy[0]));
  return scope.status();
}
absl::Status GradientOfMatrixSetDiag(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::MatrixSetDiag(scope, dy[0], ops::ZerosLike(scope, op.input(1))),
         ops::MatrixDiagPart(scope, dy[0])};
  return scope.status();
}
// Versions 2 and 3 of the ops take bands of diagonals. MatrixDiag and MatrixDiagPart then also have
// a padding value. Version 3 also aligns the diagonals. The gradient of the padding value is the
// sum of dy where `is_kept` is 0.
Output SumOfPadding(const Scope& scope, const Output& is_kept, const Output& dy) {
  const Output zero = Scalar(scope, dy.type(), 0);
  const Output padding = ops::SelectV2(scope, ops::Equal(scope, is_kept, zero), dy, zero);
  return ops::Sum(scope, padding, ops::Range(scope, 0, ops::Rank(scope, dy), 1));
}
absl::Status GetAlign(const Operation& op, std::string* align) {
  return GetAttr(op, "align", align);
}
absl::Status GradientOfMatrixDiagV3(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string align;
  GRADFLOW_RETURN_IF_ERROR(GetAlign(op, &align));
  const Output zero = Scalar(scope, dy[0].type(), 0);
  dx->push_back(
      ops::MatrixDiagPartV3(scope, dy[0], op.input(1), zero, ops::MatrixDiagPartV3::Align(align)));
  GRADFLOW_RETURN_IF_ERROR(NoGradientForTheRest(scope, op, dx));
  const Output ones = ops::OnesLike(scope, op.input(0));
  const Output is_kept = ops::MatrixDiagV3(scope, ones, op.input(1), op.input(2), op.input(3), zero,
                                           ops::MatrixDiagV3::Align(align));
  dx->back() = SumOfPadding(scope, is_kept, dy[0]);
  return scope.status();
}
absl::Status GradientOfMatrixDiagPartV3(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string align;
  GRADFLOW_RETURN_IF_ERROR(GetAlign(op, &align));
  const Output x = op.input(0);
  const Output is_kept =
      ops::MatrixDiagPartV3(scope, ops::OnesLike(scope, x), op.input(1), Scalar(scope, x.type(), 0),
                            ops::MatrixDiagPartV3::Align(align));
  *dx = {ops::MatrixSetDiagV3(scope, ops::ZerosLike(scope, x), dy[0], op.input(1),
                              ops::MatrixSetDiagV3::Align(align)),
         NoGradient(), SumOfPadding(scope, is_kept, dy[0])};
  return scope.status();
}
absl::Status GradientOfMatrixSetDiagV3(const Scope& scope, const Operation& op,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string align;
  GRADFLOW_RETURN_IF_ERROR(GetAlign(op, &align));
  *dx = {ops::MatrixSetDiagV3(scope, dy[0], ops::ZerosLike(scope, op.input(1)), op.input(2),
                              ops::MatrixSetDiagV3::Align(align)),
         ops::MatrixDiagPartV3(scope, dy[0], op.input(2), Scalar(scope, dy[0].type(), 0),
                               ops::MatrixDiagPartV3::Align(align)),
         NoGradient()};
  return scope.status();
}
absl::Status GradientOfMatrixDiagV2(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output zero = Scalar(scope, dy[0].type(), 0);
  dx->push_back(ops::MatrixDiagPartV2(scope, dy[0], op.input(1), zero));
  GRADFLOW_RETURN_IF_ERROR(NoGradientForTheRest(scope, op, dx));
  const Output ones = ops::OnesLike(scope, op.input(0));
  const Output is_kept =
      ops::MatrixDiagV2(scope, ones, op.input(1), op.input(2), op.input(3), zero);
  dx->back() = SumOfPadding(scope, is_kept, dy[0]);
  return scope.status();
}
absl::Status GradientOfMatrixDiagPartV2(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output is_kept = ops::MatrixDiagPartV2(scope, ops::OnesLike(scope, x), op.input(1),
                                               Scalar(scope, x.type(), 0));
  *dx = {ops::MatrixSetDiagV2(scope, ops::ZerosLike(scope, x), dy[0], op.input(1)), NoGradient(),
         SumOfPadding(scope, is_kept, dy[0])};
  return scope.status();
}
absl::Status GradientOfMatrixSetDiagV2(const Scope& scope, const Operation& op,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::MatrixSetDiagV2(scope, dy[0], ops::ZerosLike(scope, op.input(1)), op.input(2)),
         ops::MatrixDiagPartV2(scope, dy[0], op.input(2), Scalar(scope, dy[0].type(), 0)),
         NoGradient()};
  return scope.status();
}

// ---- Tensors with changed parts ----

absl::Status GradientOfTensorScatterUpdate(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string policy;
  GRADFLOW_RETURN_IF_ERROR(GetPolicy(op, &policy));
  const Output indices = op.input(1);
  const auto attrs = ops::TensorScatterUpdate::BadIndicesPolicy(policy);
  *dx = {ops::TensorScatterUpdate(scope, dy[0], indices, ops::ZerosLike(scope, op.input(2)), attrs),
         NoGradient(),
         ops::GatherNd(scope, dy[0], indices, ops::GatherNd::BadIndicesPolicy(policy))};
  return scope.status();
}
absl::Status GradientOfTensorScatterAdd(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string policy;
  GRADFLOW_RETURN_IF_ERROR(GetPolicy(op, &policy));
  *dx = {dy[0], NoGradient(),
         ops::GatherNd(scope, dy[0], op.input(1), ops::GatherNd::BadIndicesPolicy(policy))};
  return scope.status();
}
absl::Status GradientOfTensorScatterSub(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_RETURN_IF_ERROR(GradientOfTensorScatterAdd(scope, op, dy, dx));
  (*dx)[2] = ops::Neg(scope, (*dx)[2]);
  return scope.status();
}
absl::Status GradientOfTensorStridedSliceUpdate(const Scope& scope, const Operation& op,
                                                const std::vector<Output>& dy,
                                                std::vector<Output>* dx) {
  Masks masks;
  GRADFLOW_RETURN_IF_ERROR(GetMasks(op, &masks));
  const Output zeros = ops::ZerosLike(scope, op.input(4));
  dx->assign(4, NoGradient());
  (*dx)[0] =
      ops::TensorStridedSliceUpdate(scope, dy[0], op.input(1), op.input(2), op.input(3), zeros,
                                    ops::TensorStridedSliceUpdate::BeginMask(masks.begin)
                                        .EndMask(masks.end)
                                        .EllipsisMask(masks.ellipsis)
                                        .NewAxisMask(masks.new_axis)
                                        .ShrinkAxisMask(masks.shrink_axis));
  const Output part = ops::StridedSlice(scope, dy[0], op.input(1), op.input(2), op.input(3),
                                        ops::StridedSlice::BeginMask(masks.begin)
                                            .EndMask(masks.end)
                                            .EllipsisMask(masks.ellipsis)
                                            .NewAxisMask(masks.new_axis)
                                            .ShrinkAxisMask(masks.shrink_axis));
  dx->push_back(SumToShapeOf(scope, part, op.input(4), part));
  return scope.status();
}

absl::Status GradientOfCheckNumericsV2(const Scope& scope, const Operation&,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::CheckNumericsV2(
      scope, dy[0], "Not a number (NaN) or infinity (Inf) values detected in gradient."));
  return scope.status();
}
absl::Status GradientOfFirstInput(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(dy[0]);
  return NoGradientForTheRest(scope, op, dx);
}

// The straight-through estimator: rounding counts as the identity within the range.
absl::Status GradientOfQuantizeAndDequantizeV4(const Scope& scope, const Operation& op,
                                               const std::vector<Output>& dy,
                                               std::vector<Output>* dx) {
  int64_t axis = -1;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "axis", &axis));
  const ops::QuantizeAndDequantizeV4Grad gradient(scope, dy[0], op.input(0), op.input(1),
                                                  op.input(2),
                                                  ops::QuantizeAndDequantizeV4Grad::Axis(axis));
  *dx = {gradient.input_backprop, gradient.input_min_backprop, gradient.input_max_backprop};
  return scope.status();
}
// The gradient op is linear in its first input and, almost everywhere, constant in its other
// inputs.
absl::Status GradientOfQuantizeAndDequantizeV4Grad(const Scope& scope, const Operation& op,
                                                   const std::vector<Output>& dy,
                                                   std::vector<Output>* dx) {
  int64_t axis = -1;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "axis", &axis));
  if (!IsNoGradient(dy[0])) {
    const ops::QuantizeAndDequantizeV4Grad gradient(scope, dy[0], op.input(1), op.input(2),
                                                    op.input(3),
                                                    ops::QuantizeAndDequantizeV4Grad::Axis(axis));
    dx->push_back(gradient.input_backprop);
  }
  return NoGradientForTheRest(scope, op, dx);
}
// The straight-through estimator: rounding counts as the identity.
absl::Status GradientOfQuantizeAndDequantize(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  dx->push_back(dy[0]);
  return NoGradientForTheRest(scope, op, dx);
}

}  // namespace
}  // namespace gradients

namespace gradients::array {

void Register(GradientRegistry& registry) {
  for (const char* const op : {"Identity", "RefIdentity"}) {
    registry.Register(op, GradientByIdentity);
  }
  for (const char* const op : {"EnsureShape", "IdentityN", "Snapshot"}) {
    registry.Register(op, GradientOfIdentity);
  }
  registry.Register("PlaceholderWithDefault", GradientOfIdentity);
  registry.Register("PreventGradient", GradientOfPreventGradient);
  registry.Register("CheckNumerics", GradientOfCheckNumerics);
  for (const char* const op : {"Reshape", "ExpandDims", "Squeeze"}) {
    registry.Register(op, GradientOfReshape);
  }
  registry.Register("ReverseV2", GradientOfReverse);
  registry.Register("Roll", GradientOfRoll);
  registry.Register("ReverseSequence", GradientOfReverseSequence);
  registry.Register("Transpose", GradientOfTranspose);
  registry.Register("ConjugateTranspose", GradientOfConjugateTranspose);
  registry.Register("Pack", GradientOfPack);
  registry.Register("Unpack", GradientOfUnpack);
  registry.Register("Split", GradientOfSplit);
  registry.Register("SplitV", GradientOfSplitV);
  registry.Register("ConcatV2", GradientOfConcatV2);
  registry.Register("Concat", GradientOfConcat);
  registry.Register("Slice", GradientOfSlice);
  registry.Register("StridedSlice", GradientOfStridedSlice);
  registry.Register("StridedSliceGrad", GradientOfStridedSliceGrad);
  registry.Register("Pad", GradientOfPad);
  registry.Register("PadV2", GradientOfPad);
  registry.Register("MirrorPad", GradientOfMirrorPad);
  registry.Register("MirrorPadGrad", GradientOfMirrorPadGrad);
  registry.Register("Tile", GradientOfTile);
  registry.Register("TileGrad", GradientOfTileGrad);
  registry.Register("BroadcastTo", GradientOfBroadcastTo);
  registry.Register("Fill", GradientOfFill);
  registry.Register("Gather", GradientOfGather);
  registry.Register("GatherV2", GradientOfGatherV2);
  registry.Register("GatherNd", GradientOfGatherNd);
  registry.Register("ScatterNd", GradientOfScatterNd);
  registry.Register("SpaceToDepth", GradientOfSpaceToDepth);
  registry.Register("DepthToSpace", GradientOfDepthToSpace);
  registry.Register("SpaceToBatch", GradientOfSpaceToBatch);
  registry.Register("BatchToSpace", GradientOfBatchToSpace);
  registry.Register("SpaceToBatchND", GradientOfSpaceToBatchND);
  registry.Register("BatchToSpaceND", GradientOfBatchToSpaceND);
  registry.Register("Diag", GradientOfDiag);
  registry.Register("DiagPart", GradientOfDiagPart);
  registry.Register("MatrixBandPart", GradientOfMatrixBandPart);
  registry.Register("MatrixDiag", GradientOfMatrixDiag);
  registry.Register("MatrixDiagPart", GradientOfMatrixDiagPart);
  registry.Register("MatrixSetDiag", GradientOfMatrixSetDiag);
  registry.Register("MatrixDiagV2", GradientOfMatrixDiagV2);
  registry.Register("MatrixDiagPartV2", GradientOfMatrixDiagPartV2);
  registry.Register("MatrixSetDiagV2", GradientOfMatrixSetDiagV2);
  registry.Register("MatrixDiagV3", GradientOfMatrixDiagV3);
  registry.Register("MatrixDiagPartV3", GradientOfMatrixDiagPartV3);
  registry.Register("MatrixSetDiagV3", GradientOfMatrixSetDiagV3);
  registry.Register("TensorScatterUpdate", GradientOfTensorScatterUpdate);
  registry.Register("TensorScatterAdd", GradientOfTensorScatterAdd);
  registry.Register("TensorScatterSub", GradientOfTensorScatterSub);
  registry.Register("ScatterNdNonAliasingAdd", GradientOfTensorScatterAdd);
  registry.Register("TensorStridedSliceUpdate", GradientOfTensorStridedSliceUpdate);
  registry.Register("CheckNumericsV2", GradientOfCheckNumericsV2);
  registry.Register("Print", GradientOfFirstInput);
  registry.Register("QuantizeAndDequantizeV4", GradientOfQuantizeAndDequantizeV4);
  registry.Register("QuantizeAndDequantizeV4Grad", GradientOfQuantizeAndDequantizeV4Grad);
  registry.Register("QuantizeAndDequantize", GradientOfQuantizeAndDequantize);
  registry.Register("QuantizeAndDequantizeV2", GradientOfQuantizeAndDequantize);
  registry.Register("QuantizeAndDequantizeV3", GradientOfQuantizeAndDequantize);
  for (const char* const op : {"Assert",
                               "Bitcast",
                               "BroadcastArgs",
                               "BroadcastGradientArgs",
                               "ConcatOffset",
                               "Const",
                               "EditDistance",
                               "Empty",
                               "GuaranteeConst",
                               "HostConst",
                               "ImmutableConst",
                               "InvertPermutation",
                               "ListDiff",
                               "LowerBound",
                               "OneHot",
                               "OnesLike",
                               "Placeholder",
                               "PlaceholderV2",
                               "Rank",
                               "Shape",
                               "ShapeN",
                               "Size",
                               "StopGradient",
                               "Timestamp",
                               "Unique",
                               "UniqueV2",
                               "UniqueWithCounts",
                               "UniqueWithCountsV2",
                               "UnravelIndex",
                               "UpperBound",
                               "Where",
                               "ZerosLike"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::array

}  // namespace gradflow
