// io::JoinPath, and functions that return the parts of a path.
#ifndef GRADFLOW_COMPAT_CORE_LIB_IO_PATH_H_
#define GRADFLOW_COMPAT_CORE_LIB_IO_PATH_H_

#include <cstddef>
#include <initializer_list>
#include <string>

#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {
namespace io {
namespace internal {
std::string JoinPathImpl(std::initializer_list<absl::string_view> parts);
}  // namespace internal

// Joins the non-empty parts with a single '/' between them.
template <typename... T>
std::string JoinPath(const T&... parts) {
  return internal::JoinPathImpl({parts...});
}

// Return the part before the last '/' ("/" if that is the first character), and the part after it.
inline absl::string_view Dirname(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return absl::string_view();
  return path.substr(0, slash == 0 ? 1 : slash);
}
inline absl::string_view Basename(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}
// Returns the part after the last '.' of the last component; "" if there is no '.'.
inline absl::string_view Extension(absl::string_view path) {
  const absl::string_view name = Basename(path);
  const size_t dot = name.rfind('.');
  return dot == absl::string_view::npos ? absl::string_view() : name.substr(dot + 1);
}

}  // namespace io
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_IO_PATH_H_
