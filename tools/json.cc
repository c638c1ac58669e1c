#include "tools/json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gradflow::tools {

std::string JsonText(const Json& value) {
  return value.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/false,
                    Json::error_handler_t::replace);
}

std::string LimitedText(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t size = max_bytes;
  // A character has at most three bytes after its first byte.
  const auto is_continuation = [&](size_t i) { return (text[i] & 0xc0) == 0x80; };
  while (size > 0 && max_bytes - size < 3 && is_continuation(size)) --size;
  return absl::StrCat(text.substr(0, size), "... (", text.size(), " bytes)");
}

void JsonArrayText::Add(const Json& element) { AddText(JsonText(element)); }

void JsonArrayText::AddText(absl::string_view element) {
  absl::StrAppend(&text_, text_.size() > 1 ? ",\n" : "", element);
}

std::string JsonArrayText::Finish() {
  text_ += ']';
  return std::move(text_);
}

void JsonObjectText::Add(absl::string_view key, const Json& value) {
  AddText(key, JsonText(value));
}

void JsonObjectText::AddText(absl::string_view key, absl::string_view value) {
  absl::StrAppend(&text_, text_.size() > 1 ? "," : "", JsonText(std::string(key)), ":", value);
}

std::string JsonObjectText::Finish() {
  text_ += '}';
  return std::move(text_);
}

}  // namespace gradflow::tools
