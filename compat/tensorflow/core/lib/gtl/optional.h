// gtl::optional of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_OPTIONAL_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_OPTIONAL_H_

#include "absl/types/optional.h"

namespace tensorflow {
namespace gtl {

using absl::make_optional;
using absl::nullopt;
using absl::nullopt_t;
using absl::optional;

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_OPTIONAL_H_
