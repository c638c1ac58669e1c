// Row functions for kernels that make batches.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_BATCH_UTIL_H_
#define GRADFLOW_COMPAT_CORE_UTIL_BATCH_UTIL_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace batch_util {

// Copy between a tensor and row `index` of another tensor, which has one more dimension. Return
// INVALID_ARGUMENT unless types and numbers of elements match and the row exists.
absl::Status CopyElementToSlice(const Tensor& element, Tensor* parent, int64_t index);
absl::Status CopySliceToElement(const Tensor& parent, Tensor* element, int64_t index);
// Overload that moves strings if no other tensor shares them.
absl::Status MaybeMoveSliceToElement(Tensor* parent, Tensor* element, int64_t index);
// Copies rows [src_offset, src_offset + num_slices) to rows of another tensor.
absl::Status CopyContiguousSlices(const Tensor& src, int64_t src_offset, int64_t dst_offset,
                                  int64_t num_slices, Tensor* dst);
absl::Status MaybeMoveContiguousSlices(Tensor& src, int64_t src_offset, int64_t dst_offset,
                                       int64_t num_slices, Tensor* dst);
// Sets all elements to the single element of `padding`.
absl::Status SetElementZero(Tensor* element, const Tensor& padding);

}  // namespace batch_util
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_BATCH_UTIL_H_
