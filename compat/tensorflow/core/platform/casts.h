// bit_cast, down_cast and implicit_cast.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_CASTS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_CASTS_H_

#include "absl/base/casts.h"

namespace tensorflow {

using absl::bit_cast;
using absl::implicit_cast;

// A cast to a derived class. The caller must know that it is correct.
template <typename To, typename From>
To down_cast(From* from) {
  return static_cast<To>(from);
}
template <typename To, typename From>
To down_cast(From& from) {
  return static_cast<To>(from);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_CASTS_H_
