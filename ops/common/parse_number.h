// Parses numbers of texts as TensorFlow does.
#ifndef GRADFLOW_OPS_COMMON_PARSE_NUMBER_H_
#define GRADFLOW_OPS_COMMON_PARSE_NUMBER_H_

#include <limits>
#include <system_error>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace gradflow {

// Parses an integer, or a float or double. White space around it is allowed. Real numbers may be
// hexadecimal. Returns false if the text is not a number, or an integer that T does not hold; real
// numbers become infinite instead.
template <typename T>
bool ParseNumber(absl::string_view text, T* value) {
  if constexpr (std::is_integral_v<T>) {
    return absl::SimpleAtoi(text, value);
  } else {
    text = absl::StripAsciiWhitespace(text);
    absl::string_view digits = text;
    const bool has_sign = !digits.empty() && (digits[0] == '-' || digits[0] == '+');
    if (has_sign) digits.remove_prefix(1);
    const bool is_hex = digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == 'x';
    if (!is_hex) {
      if constexpr (std::is_same_v<T, float>) {
        return absl::SimpleAtof(text, value);
      } else {
        return absl::SimpleAtod(text, value);
      }
    }
    digits.remove_prefix(2);
    const char* const end = digits.data() + digits.size();
    const absl::from_chars_result result =
        absl::from_chars(digits.data(), end, *value, absl::chars_format::hex);
    if (result.ptr != end || result.ec == std::errc::invalid_argument || digits[0] == '-') {
      return false;
    }
    if (result.ec == std::errc::result_out_of_range && *value > 1) {
      *value = std::numeric_limits<T>::infinity();
    }
    if (has_sign && text[0] == '-') *value = -*value;
    return true;
  }
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_PARSE_NUMBER_H_
