// Typed environment variables.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_ENV_VAR_H_
#define GRADFLOW_COMPAT_CORE_UTIL_ENV_VAR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// Store the value of an environment variable, or the default if it is not set. If the value has
// another type, return INVALID_ARGUMENT and store the default. A bool is "0", "1", "false" or
// "true".
absl::Status ReadBoolFromEnvVar(absl::string_view name, bool default_value, bool* value);
absl::Status ReadInt64FromEnvVar(absl::string_view name, int64 default_value, int64* value);
absl::Status ReadFloatFromEnvVar(absl::string_view name, float default_value, float* value);
absl::Status ReadStringFromEnvVar(absl::string_view name, absl::string_view default_value,
                                  std::string* value);
// Reads comma-separated strings.
absl::Status ReadStringsFromEnvVar(absl::string_view name, absl::string_view default_value,
                                   std::vector<std::string>* value);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_ENV_VAR_H_
