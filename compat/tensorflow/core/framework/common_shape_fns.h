// Shape functions shared by many ops.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_

#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace shape_inference {

// Give output 0 the shape of input 0, which must have the given rank, or at least that rank.
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
// Gives output 0 the NumPy broadcast shape of inputs 0 and 1.
absl::Status BroadcastBinaryOpShapeFn(InferenceContext* c);
// Gives output 0 the shape of the product of inputs 0 and 1, by attributes transpose_a and
// transpose_b.
absl::Status MatMulShape(InferenceContext* c);
// Gives output 0 the shape of input 0 reduced over the axes in input 1, by attribute keep_dims.
absl::Status ReductionShape(InferenceContext* c);
// Gives output 0 the shape in attribute `shape`.
absl::Status ExplicitShape(InferenceContext* c);

}  // namespace shape_inference
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_
