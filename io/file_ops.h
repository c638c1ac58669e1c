// The ops of the library that change files, which tools for untrusted graphs refuse to run. Not for
// users.
#ifndef GRADFLOW_IO_FILE_OPS_H_
#define GRADFLOW_IO_FILE_OPS_H_

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow::internal {

// Returns true if the op writes, renames or removes files. Ops of plugins are not known.
bool WritesFiles(absl::string_view op);

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_FILE_OPS_H_
