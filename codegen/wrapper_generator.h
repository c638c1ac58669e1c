// Generator of the C++ wrapper classes, ops::Name(scope, ...), from op definitions. The classes are
// source-compatible with TensorFlow's.
#ifndef GRADFLOW_CODEGEN_WRAPPER_GENERATOR_H_
#define GRADFLOW_CODEGEN_WRAPPER_GENERATOR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/registry.h"

namespace gradflow {

struct GeneratedFile {
  std::string name;
  std::string content;
};

// Returns a header and a source for each of `groups`, and standard_ops.h, which includes all
// headers. `include_dir` is the prefix in #include directives. If `base` is not null, omits its ops
// and standard_ops.h. The output is deterministic.
//
// Returns INVALID_ARGUMENT if the registry has an error or an op of another group, and
// UNIMPLEMENTED if an op cannot have a wrapper class.
absl::StatusOr<std::vector<GeneratedFile>> GenerateWrappers(
    const Registry& registry, const std::vector<std::string>& groups,
    const std::string& include_dir = "gradflow/ops", const Registry* base = nullptr);

// Returns the content of a file.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// Writes the file into `directory` unless it already has this content. Rewriting it would rebuild
// its dependents.
absl::Status WriteIfChanged(const std::string& directory, const GeneratedFile& file);

// Generates the wrappers and writes those that changed into `directory`.
absl::Status WriteWrappers(const Registry& registry, const std::vector<std::string>& groups,
                           const std::string& include_dir, const Registry* base,
                           const std::string& directory);

}  // namespace gradflow

#endif  // GRADFLOW_CODEGEN_WRAPPER_GENERATOR_H_
