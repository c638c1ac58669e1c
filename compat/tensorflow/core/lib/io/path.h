// io::JoinPath.
#ifndef GRADFLOW_COMPAT_CORE_LIB_IO_PATH_H_
#define GRADFLOW_COMPAT_CORE_LIB_IO_PATH_H_

#include <initializer_list>
#include <string>

#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {
namespace io {
namespace internal {
std::string JoinPathImpl(std::initializer_list<StringPiece> parts);
}  // namespace internal

// Joins the non-empty parts with one '/' between them.
template <typename... T>
std::string JoinPath(const T&... parts) {
  return internal::JoinPathImpl({parts...});
}

}  // namespace io
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_IO_PATH_H_
