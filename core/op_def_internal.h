// Helpers shared by the op_def_*.cc files. Internal.
#ifndef GRADFLOW_CORE_OP_DEF_INTERNAL_H_
#define GRADFLOW_CORE_OP_DEF_INTERNAL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gradflow {

class AttrValue;
class OpDef;
class OpDef_AttrDef;

// Returns null if the op has no attribute `name`.
const OpDef_AttrDef* FindAttrDef(const OpDef& op_def, absl::string_view name);

// Returns true if `type` is a type of attributes, such as "int" or "list(int)".
bool IsAttrType(absl::string_view type);

// Returns INVALID_ARGUMENT unless `value` has the type of `attr` and satisfies its minimum and its
// allowed values.
absl::Status CheckAttrValue(const OpDef_AttrDef& attr, const AttrValue& value);

// Returns "a; b; c" and the number of further errors.
std::string JoinFaults(const std::vector<std::string>& faults);

// Returns the value in the syntax of specs: half, 1.0, "SAME", [1, 1], or unknown (a shape of
// unknown rank).
std::string DefinitionText(const AttrValue& value);
// Returns the values of a list as a set: {half, float}.
std::string DefinitionSetText(const AttrValue& list);
// Returns the spec of an attribute: "T: {half, float} = float".
std::string DefinitionText(const OpDef_AttrDef& attr);

}  // namespace gradflow

#endif  // GRADFLOW_CORE_OP_DEF_INTERNAL_H_
