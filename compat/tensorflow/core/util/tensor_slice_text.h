// The text of a slice in a checkpoint. Internal.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_TEXT_H_
#define GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_TEXT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_slice.h"

namespace tensorflow {
namespace compat_internal {

// Returns "3 4 0,2:-" for the first two rows of a tensor of shape [3,4]; "" for a whole tensor.
inline std::string ShapeAndSlice(const TensorShape& shape, const TensorSlice& slice) {
  if (slice.IsFull()) return "";
  std::string text;
  for (int d = 0; d < shape.dims(); ++d) absl::StrAppend(&text, shape.dim_size(d), " ");
  return absl::StrCat(text, slice.DebugString());
}

}  // namespace compat_internal
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_TEXT_H_
