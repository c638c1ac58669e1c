// Writes the C++ classes with which programs add ops to a graph, ops::Name(scope, ...), from the
// definitions of the ops. The classes have the form of TensorFlow's, so that code written for those
// compiles with these.
#ifndef GRADFLOW_OPS_GEN_WRAPPER_GENERATOR_H_
#define GRADFLOW_OPS_GEN_WRAPPER_GENERATOR_H_

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

// A header and a source for each of `groups`, and standard_ops.h, which includes all headers. They
// are included from `include_dir`. With `base`, the ops that it has too are left out, and there is
// no standard_ops.h. The same arguments give the same text.
//
// INVALID_ARGUMENT for a faulty registry or an op in another group, UNIMPLEMENTED for an op that no
// class can be made for.
absl::StatusOr<std::vector<GeneratedFile>> GenerateWrappers(
    const Registry& registry, const std::vector<std::string>& groups,
    const std::string& include_dir = "gradflow/ops", const Registry* base = nullptr);

// Writes the file into `directory` unless it holds just that already, so that nothing which depends
// on it is built again.
absl::Status WriteIfChanged(const std::string& directory, const GeneratedFile& file);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_GEN_WRAPPER_GENERATOR_H_
