// The files of op definitions, ops/<folder>/definitions.pbtxt: an OpDefinitions message as text.
#ifndef GRADFLOW_CODEGEN_DEFINITIONS_H_
#define GRADFLOW_CODEGEN_DEFINITIONS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/registry.h"
#include "gradflow/ops/register.h"

namespace gradflow {

// Returns the text of the definitions of each folder of ops/, keyed by folder name. The output is
// deterministic. Returns an error if a family cannot be registered without the others.
absl::StatusOr<std::map<std::string, std::string>> DefinitionsText(
    absl::Span<const OpFamily> families);

// Registers the ops in a text of definitions, without shape functions and kernels. Returns
// INVALID_ARGUMENT with the line if the text is not a list of definitions. Also returns errors of
// registrations.
absl::Status RegisterDefinitions(absl::string_view text, Registry* registry);

}  // namespace gradflow

#endif  // GRADFLOW_CODEGEN_DEFINITIONS_H_
