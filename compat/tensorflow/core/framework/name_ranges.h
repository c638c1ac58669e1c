// Ranges of arguments among the inputs or outputs of a node. Internal.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NAME_RANGES_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NAME_RANGES_H_

#include <string>

#include "gradflow/core/op_def_util.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {

class OpKernel;

namespace compat_internal {

// Stores the range of argument `name` in *range. Returns INVALID_ARGUMENT if the argument does not
// exist. `kind` is "input" or "output", for the message.
inline absl::Status FindRange(const gradflow::NameRangeMap& ranges, absl::string_view kind,
                              absl::string_view name, gradflow::NameRange* range) {
  const auto it = ranges.find(std::string(name));
  if (it == ranges.end()) return errors::InvalidArgument("Unknown ", kind, " name: ", name);
  *range = it->second;
  return absl::OkStatus();
}

// Store the index of the argument in *i. Return INVALID_ARGUMENT unless it is a single tensor.
absl::Status FindInput(const OpKernel& kernel, absl::string_view name, int* i);
absl::Status FindOutput(const OpKernel& kernel, absl::string_view name, int* i);

}  // namespace compat_internal
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NAME_RANGES_H_
