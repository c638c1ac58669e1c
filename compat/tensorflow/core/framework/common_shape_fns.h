// Shape functions shared by many ops.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_

#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace shape_inference {

// Give output 0 the shape of input 0. Its rank must be equal to `rank`, or at least `rank`.
absl::Status UnchangedShape(InferenceContext* c);
absl::Status UnchangedShapeWithRank(InferenceContext* c, int32 rank);
absl::Status UnchangedShapeWithRankAtLeast(InferenceContext* c, int32 rank);
absl::Status UnchangedShapeWithRankAtMost(InferenceContext* c, int32 rank);
// For ops without outputs.
absl::Status NoOutputs(InferenceContext* c);
// Makes output 0 a scalar.
absl::Status ScalarShape(InferenceContext* c);
// Leaves the shapes of all outputs unknown.
absl::Status UnknownShape(InferenceContext* c);
// Gives output 0 the shape of inputs 0 and 1, which must have the same shape.
absl::Status MergeBothInputsShapeFn(InferenceContext* c);
// Gives an output the NumPy broadcast shape of inputs 0 and 1.
absl::Status BroadcastBinaryOpOutputShapeFn(InferenceContext* c, int output_index);
inline absl::Status BroadcastBinaryOpShapeFn(InferenceContext* c) {
  return BroadcastBinaryOpOutputShapeFn(c, 0);
}
// Stores the broadcast shape. Incompatible shapes are an error, or make the result unknown.
absl::Status BroadcastBinaryOpOutputShapeFnHelper(InferenceContext* c, ShapeHandle shape_x,
                                                  ShapeHandle shape_y,
                                                  bool incompatible_shape_error, ShapeHandle* out);
// Give output 0 the shape of the product of inputs 0 and 1, according to attributes transpose_a and
// transpose_b, or adj_x and adj_y. BatchMatMulV2Shape broadcasts the batch dimensions.
absl::Status MatMulShape(InferenceContext* c);
absl::Status BatchMatMulShape(InferenceContext* c);
absl::Status BatchMatMulV2Shape(InferenceContext* c);
// Give output 0 the shape of BiasAdd or of its bias gradient, according to attribute data_format.
absl::Status BiasAddShape(InferenceContext* c);
absl::Status BiasAddGradShape(InferenceContext* c);
// Gives output 0 the shape of input 0 reduced over the axes in input 1, according to attribute
// keep_dims.
absl::Status ReductionShape(InferenceContext* c);
// Give output 0 the shape of the concatenated inputs. The axis is input 0 or the last input,
// respectively.
absl::Status ConcatShape(InferenceContext* c, int num_inputs_to_concat);
absl::Status ConcatV2Shape(InferenceContext* c);
// Give outputs the shape in attribute `shape`, the shapes in attribute `shapes`, or the shape that
// is the value of input 0.
absl::Status ExplicitShape(InferenceContext* c);
absl::Status ExplicitShapes(InferenceContext* c);
absl::Status RandomShape(InferenceContext* c);
// Gives output 0 the shape of input 0 split over the devices of a group along the axis in input 2.
absl::Status ReduceScatterShape(InferenceContext* c);
// Returns INVALID_ARGUMENT unless the shapes match the parts of one sparse tensor.
absl::Status ValidateSparseTensor(InferenceContext* c, ShapeHandle indices_shape,
                                  ShapeHandle values_shape, ShapeHandle shape_shape);

// The shape functions of the ops with these names: Conv2DShape is for Conv2D.
absl::Status AvgPoolShape(InferenceContext* c);
absl::Status Conv2DShape(InferenceContext* c);
absl::Status Conv3DShape(InferenceContext* c);
absl::Status DepthwiseConv2DNativeShape(InferenceContext* c);
absl::Status EinsumShape(InferenceContext* c);
absl::Status FusedBatchNormShape(InferenceContext* c);
absl::Status FusedBatchNormGradShape(InferenceContext* c);
absl::Status GatherNdShape(InferenceContext* c);
absl::Status MaxPoolShape(InferenceContext* c);
absl::Status SliceShape(InferenceContext* c);

}  // namespace shape_inference
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_
