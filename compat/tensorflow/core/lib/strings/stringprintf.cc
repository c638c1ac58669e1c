#include "tensorflow/core/lib/strings/stringprintf.h"

#include <cstddef>
#include <cstdio>

namespace tensorflow {
namespace strings {

void Appendv(std::string* dst, const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  if (length > 0) {
    const size_t old_size = dst->size();
    // vsnprintf also writes the terminating 0.
    dst->resize(old_size + static_cast<size_t>(length) + 1);
    std::vsnprintf(&(*dst)[old_size], static_cast<size_t>(length) + 1, format, again);
    dst->pop_back();
  }
  va_end(again);
}

void Appendf(std::string* dst, const char* format, ...) {
  va_list args;
  va_start(args, format);
  Appendv(dst, format, args);
  va_end(args);
}

std::string Printf(const char* format, ...) {
  std::string result;
  va_list args;
  va_start(args, format);
  Appendv(&result, format, args);
  va_end(args);
  return result;
}

}  // namespace strings
}  // namespace tensorflow
