// Shape functions that many ops share.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_

#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace shape_inference {

// Output 0 has the shape of input 0 (and it has that rank, or at least it).
absl::Status UnchangedShape(InferenceContext* c);
absl::Status UnchangedShapeWithRank(InferenceContext* c, int32 rank);
absl::Status UnchangedShapeWithRankAtLeast(InferenceContext* c, int32 rank);
absl::Status UnchangedShapeWithRankAtMost(InferenceContext* c, int32 rank);
// The op has no outputs.
absl::Status NoOutputs(InferenceContext* c);
// Output 0 is a scalar.
absl::Status ScalarShape(InferenceContext* c);
// Nothing is known of any output.
absl::Status UnknownShape(InferenceContext* c);
// Output 0 has the shape of inputs 0 and 1, which is one.
absl::Status MergeBothInputsShapeFn(InferenceContext* c);
// Output 0 is inputs 0 and 1 broadcast as NumPy does.
absl::Status BroadcastBinaryOpShapeFn(InferenceContext* c);
// Output 0 is the product of matrices 0 and 1, by attributes transpose_a and transpose_b.
absl::Status MatMulShape(InferenceContext* c);
// Output 0 is input 0 reduced over the axes in input 1, by attribute keep_dims.
absl::Status ReductionShape(InferenceContext* c);
// Output 0 has the shape that is attribute `shape`.
absl::Status ExplicitShape(InferenceContext* c);

}  // namespace shape_inference
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_COMMON_SHAPE_FNS_H_
