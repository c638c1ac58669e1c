// FastBoundsCheck: checks an index.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_BOUNDS_CHECK_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_BOUNDS_CHECK_H_

#include <type_traits>

#include "tensorflow/core/platform/macros.h"

namespace tensorflow {

// Returns true if 0 <= index < limit, using a single comparison. REQUIRES: limit >= 0
template <typename Ta, typename Tb>
bool FastBoundsCheck(Ta index, Tb limit) {
  static_assert(std::is_integral_v<Ta> && std::is_integral_v<Tb>);
  // A negative index becomes greater than any limit.
  using Unsigned = std::make_unsigned_t<decltype(index + limit)>;
  return TF_PREDICT_TRUE(static_cast<Unsigned>(index) < static_cast<Unsigned>(limit));
}

namespace internal {

// Returns its argument after a single read, so that a check and a use see the same value even if
// another thread writes the argument in between.
template <typename T>
T SubtleMustCopy(const T& x) {
  static_assert(std::is_integral_v<T>);
  return *reinterpret_cast<const volatile T*>(&x);
}

}  // namespace internal
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_BOUNDS_CHECK_H_
