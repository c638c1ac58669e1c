// Abseil's nullability.h if the system has it, otherwise definitions of its names that have no
// effect.
#ifndef GRADFLOW_COMPAT_ABSL_BASE_NULLABILITY_H_
#define GRADFLOW_COMPAT_ABSL_BASE_NULLABILITY_H_

#if __has_include_next(<absl/base/nullability.h>)
#include_next <absl/base/nullability.h>
#else

namespace absl {

template <typename T>
using Nonnull = T;
template <typename T>
using Nullable = T;
template <typename T>
using NullabilityUnknown = T;

}  // namespace absl

#define absl_nonnull
#define absl_nullable
#define absl_nullability_unknown

#endif

#endif  // GRADFLOW_COMPAT_ABSL_BASE_NULLABILITY_H_
