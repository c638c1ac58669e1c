#include "gradflow/core/status.h"

#include <cstdint>

namespace gradflow::errors {
namespace {

// Returns the number of bytes of the UTF-8 character at the front of `text`, or 0 if it must not be
// printed: invalid UTF-8, overlong forms, surrogates, and C0 and C1 controls.
size_t PrintableLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  uint32_t code = byte(0) & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0xa0, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  // Marks that change the direction of text, and line separators.
  const bool is_format = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code < kSmallest[length] || code > 0x10ffff || is_surrogate || is_format ? 0 : length;
}

// Like Printable(), but does not escape the characters in `allowed`.
std::string Escaped(absl::string_view text, absl::string_view allowed, size_t max_bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    const size_t length =
        allowed.find(text[0]) != absl::string_view::npos ? 1 : PrintableLength(text);
    if (result.size() + (length == 0 ? 4 : length) > max_bytes) return result + "...";
    if (length > 0) {
      result.append(text.data(), length);
    } else {
      const auto byte = static_cast<uint8_t>(text[0]);
      result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace

std::string Printable(absl::string_view text, size_t max_bytes) {
  return Escaped(text, "", max_bytes);
}

std::string PrintableLines(absl::string_view text) {
  return Escaped(text, "\n\t", absl::string_view::npos);
}

// The message may contain untrusted text of an attribute or an input.
absl::Status Prefix(absl::string_view prefix, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(prefix, PrintableLines(status.message())));
}

}  // namespace gradflow::errors
