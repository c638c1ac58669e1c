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

// Parse the whole text, with white space around it. Return false, and leave *value undefined, if it
// is not a number of the type.
inline bool safe_strto32(StringPiece text, int32* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strto64(StringPiece text, int64* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strtou32(StringPiece text, uint32* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strtou64(StringPiece text, uint64* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strtof(StringPiece text, float* value) { return absl::SimpleAtof(text, value); }
inline bool safe_strtod(StringPiece text, double* value) { return absl::SimpleAtod(text, value); }

// Parses a number of any of these types.
template <typename T>
bool SafeStringToNumeric(StringPiece text, T* value) {
  if constexpr (std::is_same_v<T, float>) {
    return safe_strtof(text, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return safe_strtod(text, value);
  } else {
    return absl::SimpleAtoi(text, value);
  }
}
template <typename T>
bool ProtoParseNumeric(StringPiece text, T* value) {
  return SafeStringToNumeric(text, value);
}

// Hexadecimal digits of a fingerprint, and back.
std::string FpToString(uint64 fingerprint);
bool StringToFp(const std::string& text, uint64* fingerprint);
// Parses hexadecimal digits without a prefix.
bool HexStringToUint64(StringPiece text, uint64* result);

// "1.23M", "1.18MiB" and "1.23 ms", for people.
std::string HumanReadableNum(int64 value);
std::string HumanReadableNumBytes(int64 bytes);
std::string HumanReadableElapsedTime(double seconds);

}  // namespace strings
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_NUMBERS_H_
