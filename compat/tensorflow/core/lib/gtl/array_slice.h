// gtl::ArraySlice.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_ARRAY_SLICE_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_ARRAY_SLICE_H_

#include "absl/types/span.h"

namespace tensorflow {
namespace gtl {

template <typename T>
using ArraySlice = absl::Span<const T>;
template <typename T>
using MutableArraySlice = absl::Span<T>;

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_ARRAY_SLICE_H_
