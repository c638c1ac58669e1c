#include "tensorflow/core/util/env_var.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace {

// Parses the variable with `parse`, which takes the text and a pointer to the value.
template <typename T, typename Parse>
absl::Status Read(absl::string_view name, const T& default_value, const char* type, T* value,
                  Parse parse) {
  *value = default_value;
  const char* const text = std::getenv(std::string(name).c_str());
  if (text == nullptr || parse(absl::string_view(text), value)) return absl::OkStatus();
  *value = default_value;
  return errors::InvalidArgument("Failed to parse the env-var ${", name, "} into ", type, ": ",
                                 text);
}

}  // namespace

absl::Status ReadBoolFromEnvVar(absl::string_view name, bool default_value, bool* value) {
  return Read(name, default_value, "bool", value, [](absl::string_view text, bool* out) {
    *out = text == "1" || absl::EqualsIgnoreCase(text, "true");
    return *out || text == "0" || absl::EqualsIgnoreCase(text, "false");
  });
}

absl::Status ReadInt64FromEnvVar(absl::string_view name, int64 default_value, int64* value) {
  return Read(name, default_value, "int64", value,
              [](absl::string_view text, int64* out) { return absl::SimpleAtoi(text, out); });
}

absl::Status ReadFloatFromEnvVar(absl::string_view name, float default_value, float* value) {
  return Read(name, default_value, "float", value,
              [](absl::string_view text, float* out) { return absl::SimpleAtof(text, out); });
}

absl::Status ReadStringFromEnvVar(absl::string_view name, absl::string_view default_value,
                                  std::string* value) {
  const char* const text = std::getenv(std::string(name).c_str());
  *value = text == nullptr ? std::string(default_value) : text;
  return absl::OkStatus();
}

absl::Status ReadStringsFromEnvVar(absl::string_view name, absl::string_view default_value,
                                   std::vector<std::string>* value) {
  std::string text;
  TF_RETURN_IF_ERROR(ReadStringFromEnvVar(name, default_value, &text));
  *value = absl::StrSplit(text, ',');
  return absl::OkStatus();
}

}  // namespace tensorflow
