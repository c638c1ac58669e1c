// Base64 with the web-safe alphabet.
#ifndef GRADFLOW_COMPAT_CORE_LIB_STRINGS_BASE64_H_
#define GRADFLOW_COMPAT_CORE_LIB_STRINGS_BASE64_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {

// Writes padding only on request.
template <typename T>
absl::Status Base64Encode(absl::string_view source, bool with_padding, T* encoded) {
  std::string text = absl::WebSafeBase64Escape(source);
  if (with_padding) text.resize((text.size() + 3) / 4 * 4, '=');
  *encoded = std::move(text);
  return absl::OkStatus();
}
template <typename T>
absl::Status Base64Encode(absl::string_view source, T* encoded) {
  return Base64Encode(source, false, encoded);
}
// Returns INVALID_ARGUMENT if the text is not valid.
template <typename T>
absl::Status Base64Decode(absl::string_view data, T* decoded) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(data, &bytes)) {
    return errors::InvalidArgument("the text is not Base64 with the alphabet for the web");
  }
  *decoded = std::move(bytes);
  return absl::OkStatus();
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_BASE64_H_
