// Text of JSON documents from untrusted strings.
#ifndef GRADFLOW_TOOLS_JSON_H_
#define GRADFLOW_TOOLS_JSON_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace gradflow::tools {

// Returns at most `max_bytes` of `text` as valid UTF-8, followed by "... (N bytes)" if it is
// longer. Bytes that are not UTF-8 become U+FFFD.
std::string ValidUtf8(absl::string_view text, size_t max_bytes);

// Appends `text` to *json as a string literal. Bytes that are not UTF-8 become U+FFFD.
void AppendQuoted(absl::string_view text, std::string* json);

// Returns `text` as a string literal.
std::string Quoted(absl::string_view text);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_JSON_H_
