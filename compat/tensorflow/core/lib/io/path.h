// io::JoinPath, and the parts of a path.
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

// Joins the non-empty parts with one '/' between them.
template <typename... T>
std::string JoinPath(const T&... parts) {
  return internal::JoinPathImpl({parts...});
}

// Returns what precedes the last '/', or "/" if that is the first character; what follows it.
inline absl::string_view Dirname(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return absl::string_view();
  return path.substr(0, slash == 0 ? 1 : slash);
}
inline absl::string_view Basename(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}
// Returns what follows the last '.' of the last part; empty if there is none.
inline absl::string_view Extension(absl::string_view path) {
  const absl::string_view name = Basename(path);
  const size_t dot = name.rfind('.');
  return dot == absl::string_view::npos ? absl::string_view() : name.substr(dot + 1);
}

}  // namespace io
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_IO_PATH_H_
