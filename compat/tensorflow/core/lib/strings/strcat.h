// strings::StrCat and StrAppend.
#ifndef GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRCAT_H_
#define GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRCAT_H_

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace strings {

using absl::StrAppend;
using absl::StrCat;

}  // namespace strings
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRCAT_H_
