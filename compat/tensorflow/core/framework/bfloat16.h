// bfloat16, with Eigen's functions for it.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_BFLOAT16_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_BFLOAT16_H_

#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// Convert arrays of `size` elements. Both conversions to bfloat16 round to nearest, ties to even:
// gradflow never truncates.
inline void FloatToBFloat16(const float* src, bfloat16* dst, int64 size) {
  for (int64 i = 0; i < size; ++i) dst[i] = static_cast<bfloat16>(src[i]);
}
inline void RoundFloatToBFloat16(const float* src, bfloat16* dst, int64 size) {
  FloatToBFloat16(src, dst, size);
}
inline void BFloat16ToFloat(const bfloat16* src, float* dst, int64 size) {
  for (int64 i = 0; i < size; ++i) dst[i] = static_cast<float>(src[i]);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_BFLOAT16_H_
