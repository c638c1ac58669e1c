// Padding: how windows treat image borders.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_PADDING_H_
#define GRADFLOW_COMPAT_CORE_UTIL_PADDING_H_

#include <string>

#include "tensorflow/core/platform/status.h"

namespace tensorflow {

enum Padding { VALID = 1, SAME = 2, EXPLICIT = 3 };

// Reads "VALID", "SAME" or "EXPLICIT". Returns INVALID_ARGUMENT for other names.
absl::Status GetPaddingFromString(const std::string& text, Padding* value);
inline std::string GetPaddingAttrString() { return "padding: {'SAME', 'VALID'}"; }
inline std::string GetPaddingAttrStringWithExplicit() {
  return "padding: {'SAME', 'VALID', 'EXPLICIT'}";
}
inline std::string GetExplicitPaddingsAttrString() { return "explicit_paddings: list(int) = []"; }

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_PADDING_H_
