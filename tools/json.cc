#include "tools/json.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace gradflow::tools {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";

// Returns the number of bytes of the UTF-8 character at the front of `text`; 0 if there is none.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  uint32_t code = byte(0) & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kSmallest[length] || code > 0x10ffff || is_surrogate ? 0 : length;
}

}  // namespace

std::string ValidUtf8(absl::string_view text, size_t max_bytes) {
  const size_t size = text.size();
  std::string result;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const absl::string_view part = length == 0 ? kReplacement : text.substr(0, length);
    if (result.size() + part.size() > max_bytes) {
      absl::StrAppend(&result, "... (", size, " bytes)");
      break;
    }
    result.append(part.data(), part.size());
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

void AppendQuoted(absl::string_view text, std::string* json) {
  constexpr char kDigits[] = "0123456789abcdef";
  json->push_back('"');
  while (!text.empty()) {
    const auto c = static_cast<uint8_t>(text[0]);
    const size_t length = CharacterLength(text);
    if (c == '"' || c == '\\') {
      *json += {'\\', text[0]};
    } else if (c < 0x20) {
      *json += {'\\', 'u', '0', '0', kDigits[c >> 4], kDigits[c & 15]};
    } else if (length == 0) {
      json->append(kReplacement);
    } else {
      json->append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json->push_back('"');
}

std::string Quoted(absl::string_view text) {
  std::string json;
  AppendQuoted(text, &json);
  return json;
}

}  // namespace gradflow::tools
