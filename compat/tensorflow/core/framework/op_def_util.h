// Functions that check, compare and print op definitions.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_UTIL_H_

#include <string>

#include "gradflow/core/op_def_util.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

using gradflow::ValidateOpDef;

// Returns UNIMPLEMENTED if the op was deprecated in this or an earlier graph version.
absl::Status CheckOpDeprecation(const OpDef& op_def, int graph_def_version);
// Returns INVALID_ARGUMENT unless the value has the attribute's type, is at least its minimum, and
// is one of its allowed values.
absl::Status ValidateAttrValue(const AttrValue& attr_value, const OpDef::AttrDef& attr);

// Return null if the name does not exist.
const OpDef::AttrDef* FindAttr(absl::string_view name, const OpDef& op_def);
OpDef::AttrDef* FindAttrMutable(absl::string_view name, OpDef* op_def);
const OpDef::ArgDef* FindInputArg(absl::string_view name, const OpDef& op_def);

// Returns the definition on one line: "Op<name=Add; signature=x:T, y:T -> z:T; attr=T:type>".
std::string SummarizeOpDef(const OpDef& op_def);

// Return INVALID_ARGUMENT if `new_op` does not accept all nodes of `old_op`, if the default of an
// attribute that `penultimate_op` has added has changed, or if any default has changed,
// respectively.
absl::Status OpDefCompatible(const OpDef& old_op, const OpDef& new_op);
absl::Status OpDefAddedDefaultsUnchanged(const OpDef& old_op, const OpDef& penultimate_op,
                                         const OpDef& new_op);
absl::Status OpDefAttrDefaultsUnchanged(const OpDef& old_op, const OpDef& new_op);

// Remove documentation. The second function keeps deprecation messages.
void RemoveDescriptionsFromOpDef(OpDef* op_def);
void RemoveNonDeprecationDescriptionsFromOpDef(OpDef* op_def);
void RemoveDescriptionsFromOpList(OpList* op_list);

// Compare all fields. The order of attributes does not matter.
bool AttrDefEqual(const OpDef::AttrDef& a1, const OpDef::AttrDef& a2);
bool RepeatedAttrDefEqual(const protobuf::RepeatedPtrField<OpDef::AttrDef>& a1,
                          const protobuf::RepeatedPtrField<OpDef::AttrDef>& a2);
bool OpDefEqual(const OpDef& o1, const OpDef& o2);
// Return a hash. Equal values have equal hashes.
uint64 AttrDefHash(const OpDef::AttrDef& a);
uint64 RepeatedAttrDefHash(const protobuf::RepeatedPtrField<OpDef::AttrDef>& a);
uint64 OpDefHash(const OpDef& o);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_UTIL_H_
