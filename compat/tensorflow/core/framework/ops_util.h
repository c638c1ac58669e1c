// Helpers for kernels.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OPS_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OPS_UTIL_H_

#include <string>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/kernels/bounds_check.h"
#include "tensorflow/core/util/tensor_format.h"

namespace tensorflow {

// Returns true if each slice of dimension 0 of a tensor of this shape would be aligned.
template <typename T>
bool IsInnerDimsSizeAligned(const TensorShape& shape) {
  if (shape.dims() == 0) return false;
  const int64 size = shape.dim_size(0);
  return size != 0 &&
         shape.num_elements() / size * static_cast<int64>(sizeof(T)) % Allocator::kAlignment == 0;
}

// Replaces each character that is not a letter, digit, "_" or "-" with "_".
inline std::string SanitizeThreadSuffix(std::string suffix) {
  for (char& c : suffix) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
    if (!keep) c = '_';
  }
  return suffix;
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OPS_UTIL_H_
