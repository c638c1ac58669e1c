// StringPiece.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_STRINGPIECE_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_STRINGPIECE_H_

#include "absl/strings/string_view.h"

namespace tensorflow {

using StringPiece = absl::string_view;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_STRINGPIECE_H_
