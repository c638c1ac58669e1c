// strings::Printf and related functions: printf to a string.
#ifndef GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRINGPRINTF_H_
#define GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRINGPRINTF_H_

#include <cstdarg>
#include <string>

namespace tensorflow {
namespace strings {

// Returns the text.
[[gnu::format(printf, 1, 2)]] std::string Printf(const char* format, ...);
// Append the text.
[[gnu::format(printf, 2, 3)]] void Appendf(std::string* dst, const char* format, ...);
void Appendv(std::string* dst, const char* format, va_list args);

}  // namespace strings
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRINGPRINTF_H_
