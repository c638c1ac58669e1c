// gtl::InlinedVector.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_INLINED_VECTOR_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_INLINED_VECTOR_H_

#include "absl/container/inlined_vector.h"

namespace tensorflow {
namespace gtl {

using absl::InlinedVector;

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_INLINED_VECTOR_H_
