// Functions for attribute values.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "gradflow/core/attributes.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

using gradflow::AreAttrValuesEqual;
using gradflow::AttrValueHasType;
using gradflow::ParseAttrValue;
using gradflow::SetAttrValue;
using gradflow::SummarizeAttrValue;

// Value types that gradflow's function does not accept.
void SetAttrValue(const TensorShapeProto& value, AttrValue* out);
void SetAttrValue(const TensorProto& value, AttrValue* out);
void SetAttrValue(gtl::ArraySlice<const char*> value, AttrValue* out);
void SetAttrValue(gtl::ArraySlice<double> value, AttrValue* out);
void SetAttrValue(gtl::ArraySlice<TensorShape> value, AttrValue* out);
void SetAttrValue(gtl::ArraySlice<TensorShapeProto> value, AttrValue* out);
void SetAttrValue(gtl::ArraySlice<TensorProto> value, AttrValue* out);
void SetAttrValue(std::initializer_list<bool> value, AttrValue* out);
// Moves the strings.
void MoveAttrValue(std::vector<std::string>&& value, AttrValue* out);

inline bool AreAttrValuesEqual(const AttrValue& a, const AttrValue& b,
                               bool /*allow_false_negatives*/) {
  return gradflow::AreAttrValuesEqual(a, b);
}
// Return a hash. Equal values have equal hashes.
uint64 AttrValueHash(const AttrValue& a);
uint64 FastAttrValueHash(const AttrValue& a);

// Returns true if the value, or a function attribute in it, is a placeholder.
bool HasPlaceHolder(const AttrValue& val);
// Overwrites a placeholder with its value. Returns false if the placeholder is unknown.
using SubstituteFunc = std::function<bool(const std::string& placeholder, AttrValue* value)>;
// Replaces all placeholders. Returns false if `substitute` does not know a placeholder.
bool SubstitutePlaceholders(const SubstituteFunc& substitute, AttrValue* value);

namespace attr_value_util_internal {

// Returns the size of the elements in bytes, or -1 if the shape is invalid or not fully defined.
int64 TensorByteSize(const TensorProto& t);

}  // namespace attr_value_util_internal

namespace compat_internal {

// Read an attribute like GetNodeAttr. `attr` may be null.
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name, NameAttrList* value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name, TensorShapeProto* value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name, TensorProto* value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            const NameAttrList** value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            const TensorProto** value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<NameAttrList>* value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<TensorShapeProto>* value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<TensorShape>* value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<const std::string*>* value);
absl::Status GetMessageAttr(const AttrValue* attr, absl::string_view name,
                            std::vector<const TensorShapeProto*>* value);

}  // namespace compat_internal
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
