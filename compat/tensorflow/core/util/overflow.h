// Arithmetic that detects overflow.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_OVERFLOW_H_
#define GRADFLOW_COMPAT_CORE_UTIL_OVERFLOW_H_

#include "gradflow/core/tensor_shape.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// Return -1 if an operand is negative or the result exceeds int64.
inline int64 MultiplyWithoutOverflow(int64 x, int64 y) {
  return gradflow::MultiplyWithoutOverflow(x, y);
}
inline int64 AddWithoutOverflow(int64 x, int64 y) {
  int64 sum;
  return x < 0 || y < 0 || __builtin_add_overflow(x, y, &sum) ? -1 : sum;
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_OVERFLOW_H_
