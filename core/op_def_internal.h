// What the sources about op definitions share. Internal: not part of the library's interface.
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

// Null if the op has no such attribute.
const OpDef_AttrDef* FindAttrDef(const OpDef& op_def, absl::string_view name);

// Whether `type` is a type of attributes: "int", "list(int)".
bool IsAttrType(absl::string_view type);

// INVALID_ARGUMENT unless a node may have `value` for `attr`: its type, minimum and allowed values.
absl::Status CheckAttrValue(const OpDef_AttrDef& attr, const AttrValue& value);

// "a; b; c", and how many more there are.
std::string JoinFaults(const std::vector<std::string>& faults);

// As definitions are written: half, 1.0, "SAME", [1, 1], unknown (a shape of unknown rank).
std::string DefinitionText(const AttrValue& value);
// The values of a list as a set: {half, float}.
std::string DefinitionSetText(const AttrValue& list);
// "T: {half, float} = float"
std::string DefinitionText(const OpDef_AttrDef& attr);

}  // namespace gradflow

#endif  // GRADFLOW_CORE_OP_DEF_INTERNAL_H_
