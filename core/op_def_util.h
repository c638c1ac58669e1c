// What an OpDef means for a NodeDef: checks, defaults, and the types of inputs and outputs.
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

// INVALID_ARGUMENT unless the definition holds together: names are identifiers and unique, types
// and type attributes exist, defaults have their type and are allowed.
absl::Status ValidateOpDef(const OpDef& op_def);

// Sets the attributes with a default that the node does not have.
void AddDefaultsToNodeDef(const OpDef& op_def, NodeDef* node);
// Removes the attributes that have their default value.
void StripDefaultsFromNodeDef(const OpDef& op_def, NodeDef* node);

// INVALID_ARGUMENT unless the attributes are those of the definition, all of them, with allowed
// values, and the number of data inputs is right. Attributes whose names begin with '_' are
// anyone's. REQUIRES: defaults are set.
absl::Status ValidateNodeDef(const NodeDef& node, const OpDef& op_def);

// The types of the node's inputs and outputs, lists laid out one after the other.
absl::Status InOutTypesForNode(const NodeDef& node, const OpDef& op_def, DataTypeVector* inputs,
                               DataTypeVector* outputs);

// For each input (output) argument by name, [begin, end) of it among the node's inputs (outputs).
// Either result may be null.
using NameRange = std::pair<int, int>;
using NameRangeMap = absl::flat_hash_map<std::string, NameRange>;
absl::Status NameRangesForNode(const NodeDef& node, const OpDef& op_def, NameRangeMap* inputs,
                               NameRangeMap* outputs);

// One line that says all but the documentation:
//   Pack(values: N * T) -> (output: T) { N: int >= 1; T: type; axis: int = 0 }
// with "  [stateful]", "  [commutative, aggregate]" or "  [deprecated]" behind where it is so.
std::string OpDefSignature(const OpDef& op_def);

// Up to `limit` of `candidates` that are spelt most like `name`, nearest first, none too far.
std::vector<std::string> NearNames(absl::string_view name,
                                   const std::vector<std::string>& candidates, int limit = 3);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_OP_DEF_UTIL_H_
