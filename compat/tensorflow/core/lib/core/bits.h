// Log2Floor, NextPowerOfTwo and related functions.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_BITS_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_BITS_H_

#include "absl/numeric/bits.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// Return -1 for 0.
inline int Log2Floor(uint32 n) { return static_cast<int>(absl::bit_width(n)) - 1; }
inline int Log2Floor64(uint64 n) { return static_cast<int>(absl::bit_width(n)) - 1; }
inline int Log2Ceiling(uint32 n) { return n == 0 ? -1 : static_cast<int>(absl::bit_width(n - 1)); }
inline int Log2Ceiling64(uint64 n) {
  return n == 0 ? -1 : static_cast<int>(absl::bit_width(n - 1));
}
// Return the smallest power of two that is not less than the value. REQUIRES: the type can
// represent it
inline uint32 NextPowerOfTwo(uint32 value) { return absl::bit_ceil(value); }
inline uint64 NextPowerOfTwo64(uint64 value) { return absl::bit_ceil(value); }
inline int64 NextPowerOfTwoS64(int64 value) {
  return static_cast<int64>(absl::bit_ceil(static_cast<uint64>(value)));
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_BITS_H_
