// str_util: functions that precede their counterparts in Abseil.
#ifndef GRADFLOW_COMPAT_CORE_LIB_STRINGS_STR_UTIL_H_
#define GRADFLOW_COMPAT_CORE_LIB_STRINGS_STR_UTIL_H_

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {
namespace str_util {

using absl::EndsWith;
using absl::StartsWith;
using absl::StrContains;

// Joins the elements of `list` with `separator`.
template <typename T>
std::string Join(const T& list, const char* separator) {
  return absl::StrJoin(list, separator);
}

}  // namespace str_util
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_STR_UTIL_H_
