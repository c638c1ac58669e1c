// Functions of an OpDef and a NodeDef: validation, defaults, and the types of inputs and outputs.
#ifndef GRADFLOW_CORE_OP_DEF_UTIL_H_
#define GRADFLOW_CORE_OP_DEF_UTIL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class NodeDef;
class OpDef;
class OpDef_ArgDef;

// Returns INVALID_ARGUMENT unless the definition is consistent: names are identifiers and unique,
// types and type attributes exist, and defaults have their attribute's type and are allowed.
absl::Status ValidateOpDef(const OpDef& op_def);

// Like ValidateOpDef(), for the signature of a function. Allows any name of the function, names of
// nodes for arguments and results, also the same, and lengths of arguments without a minimum.
absl::Status ValidateFunctionSignature(const OpDef& signature);

// Sets each missing attribute that has a default.
void AddDefaultsToNodeDef(const OpDef& op_def, NodeDef* node);
// Removes each attribute whose value is its default.
void StripDefaultsFromNodeDef(const OpDef& op_def, NodeDef* node);

// Returns INVALID_ARGUMENT unless the node has exactly the attributes of the definition, with
// allowed values, and the right number of data inputs. Attributes whose names begin with '_' are
// ignored. REQUIRES: defaults are set.
absl::Status ValidateNodeDef(const NodeDef& node, const OpDef& op_def);

// Returns true if an argument is a list of tensors.
bool IsListArg(const OpDef_ArgDef& arg);

// Computes the types of the node's inputs and outputs, with lists flattened.
absl::Status InOutTypesForNode(const NodeDef& node, const OpDef& op_def, DataTypeVector* inputs,
                               DataTypeVector* outputs);

// Maps the name of each input (output) argument to its range [begin, end) of the node's inputs
// (outputs). Either result may be null.
using NameRange = std::pair<int, int>;
using NameRangeMap = absl::flat_hash_map<std::string, NameRange>;
absl::Status NameRangesForNode(const NodeDef& node, const OpDef& op_def, NameRangeMap* inputs,
                               NameRangeMap* outputs);

// Returns the definition on one line, without documentation:
//   Pack(values: N * T) -> (output: T) { N: int >= 1; T: type; axis: int = 0 }
// followed by flags, if any: "  [stateful]", "  [commutative, aggregate]", "  [deprecated]".
std::string OpDefSignature(const OpDef& op_def);

// Returns the similar names among `candidates`, at most `limit`, by ascending edit distance to
// `name`.
std::vector<std::string> NearNames(absl::string_view name,
                                   const std::vector<std::string>& candidates, int limit = 3);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_OP_DEF_UTIL_H_
