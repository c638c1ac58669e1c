// Conversion of numbers to and from text.
#ifndef GRADFLOW_COMPAT_CORE_LIB_STRINGS_NUMBERS_H_
#define GRADFLOW_COMPAT_CORE_LIB_STRINGS_NUMBERS_H_

#include <string>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace strings {

// Parse the whole text. Surrounding white space is allowed. If the text is not a number of the
// type, return false and leave *value undefined.
inline bool safe_strto32(absl::string_view text, int32* value) {
  return absl::SimpleAtoi(text, value);
}
inline bool safe_strto64(absl::string_view text, int64* value) {
  return absl::SimpleAtoi(text, value);
}
inline bool safe_strtou32(absl::string_view text, uint32* value) {
  return absl::SimpleAtoi(text, value);
}
inline bool safe_strtou64(absl::string_view text, uint64* value) {
  return absl::SimpleAtoi(text, value);
}
inline bool safe_strtof(absl::string_view text, float* value) {
  return absl::SimpleAtof(text, value);
}
inline bool safe_strtod(absl::string_view text, double* value) {
  return absl::SimpleAtod(text, value);
}

// Parses a number of any of these types.
template <typename T>
bool SafeStringToNumeric(absl::string_view text, T* value) {
  if constexpr (std::is_same_v<T, float>) {
    return safe_strtof(text, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return safe_strtod(text, value);
  } else {
    return absl::SimpleAtoi(text, value);
  }
}
template <typename T>
bool ProtoParseNumeric(absl::string_view text, T* value) {
  return SafeStringToNumeric(text, value);
}

// Convert a fingerprint to hexadecimal digits, and back.
std::string FpToString(uint64 fingerprint);
bool StringToFp(const std::string& text, uint64* fingerprint);
// Parses hexadecimal digits without a prefix.
bool HexStringToUint64(absl::string_view text, uint64* result);

// Human-readable text: "1.23M", "1.18MiB" and "1.23 ms".
std::string HumanReadableNum(int64 value);
std::string HumanReadableNumBytes(int64 bytes);
std::string HumanReadableElapsedTime(double seconds);

}  // namespace strings
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_NUMBERS_H_
