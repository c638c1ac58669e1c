// Attributes of nodes: typed access to AttrValue, comparison, printing and parsing.
#ifndef GRADFLOW_CORE_ATTRIBUTES_H_
#define GRADFLOW_CORE_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class AttrValue;
class NameAttrList;
class NodeDef;

// ---- Reading. GetNodeAttr returns NOT_FOUND if the node has no attribute `name`, INVALID_ARGUMENT
// if its value has another type or *value cannot hold it, such as a partial shape ----

absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::string* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, int64_t* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, int32_t* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, float* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, bool* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, DataType* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, TensorShape* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, PartialTensorShape* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, Tensor* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name,
                         std::vector<std::string>* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<int64_t>* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<int32_t>* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<float>* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<bool>* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, DataTypeVector* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name,
                         std::vector<PartialTensorShape>* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, std::vector<Tensor>* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name, NameAttrList* value);
absl::Status GetNodeAttr(const NodeDef& node, absl::string_view name,
                         std::vector<NameAttrList>* value);
// Returns the value of attribute `name`, borrowed from `node`; nullptr if the node lacks it.
const AttrValue* FindNodeAttr(const NodeDef& node, absl::string_view name);

// A view of a node's attributes. Borrows the node.
class AttrSlice {
 public:
  // Converts from and to a node implicitly.
  AttrSlice(const NodeDef& node) : node_(&node) {}    // NOLINT: as in TensorFlow
  operator const NodeDef&() const { return *node_; }  // NOLINT: usable as a NodeDef
  const NodeDef& node() const { return *node_; }
  // Return null, or NOT_FOUND with *value null, if the node has no attribute of this name.
  const AttrValue* Find(absl::string_view name) const { return FindNodeAttr(*node_, name); }
  absl::Status Find(absl::string_view name, const AttrValue** value) const;
  int size() const;
  // Returns SummarizeNodeDef(node()).
  std::string SummarizeNode() const;

 private:
  const NodeDef* node_;
};

// ---- Writing. The functions replace an existing value ----

void SetAttrValue(absl::string_view value, AttrValue* out);
void SetAttrValue(const char* value, AttrValue* out);
void SetAttrValue(const std::string& value, AttrValue* out);
void SetAttrValue(int64_t value, AttrValue* out);
void SetAttrValue(int32_t value, AttrValue* out);
void SetAttrValue(float value, AttrValue* out);
void SetAttrValue(double value, AttrValue* out);
void SetAttrValue(bool value, AttrValue* out);
void SetAttrValue(DataType value, AttrValue* out);
void SetAttrValue(const TensorShape& value, AttrValue* out);
void SetAttrValue(const PartialTensorShape& value, AttrValue* out);
void SetAttrValue(const Tensor& value, AttrValue* out);
void SetAttrValue(absl::Span<const absl::string_view> value, AttrValue* out);
void SetAttrValue(absl::Span<const std::string> value, AttrValue* out);
void SetAttrValue(absl::Span<const int64_t> value, AttrValue* out);
void SetAttrValue(absl::Span<const int32_t> value, AttrValue* out);
void SetAttrValue(absl::Span<const float> value, AttrValue* out);
void SetAttrValue(absl::Span<const bool> value, AttrValue* out);
void SetAttrValue(const std::vector<bool>& value, AttrValue* out);
void SetAttrValue(absl::Span<const DataType> value, AttrValue* out);
void SetAttrValue(absl::Span<const PartialTensorShape> value, AttrValue* out);
void SetAttrValue(absl::Span<const Tensor> value, AttrValue* out);
void SetAttrValue(const NameAttrList& value, AttrValue* out);
void SetAttrValue(absl::Span<const NameAttrList> value, AttrValue* out);
void SetAttrValue(const AttrValue& value, AttrValue* out);

template <typename T>
void AddNodeAttr(absl::string_view name, const T& value, NodeDef* node);

// ---- Whole values ----

// Returns INVALID_ARGUMENT unless `value` is of `type`, a name as in op definitions: "int",
// "float", "bool", "string", "type", "shape", "tensor", "func", or "list(...)" of these. Also
// checks the enum numbers, shapes, tensors and functions in the value.
absl::Status AttrValueHasType(const AttrValue& value, absl::string_view type);
// Returns true if the values mean the same: tensors are compared by element, regardless of their
// encoding.
bool AreAttrValuesEqual(const AttrValue& a, const AttrValue& b);
// Returns a human-readable value: 3, "text", DT_FLOAT, [1, 2], or a tensor's first elements.
std::string SummarizeAttrValue(const AttrValue& value);
// Returns the node on one line: "{{node n}} = Op[T=DT_FLOAT](a, b:1, ^c)".
std::string SummarizeNodeDef(const NodeDef& node);
// Parses `text`, a value of `type` in protobuf text format without its field name: 3, 'text',
// DT_FLOAT, [1, 2], { dim { size: 2 } }. Returns false if it does not parse.
bool ParseAttrValue(absl::string_view type, absl::string_view text, AttrValue* out);

namespace internal {
AttrValue* MutableNodeAttr(NodeDef* node, absl::string_view name);
}  // namespace internal

template <typename T>
void AddNodeAttr(absl::string_view name, const T& value, NodeDef* node) {
  SetAttrValue(value, internal::MutableNodeAttr(node, name));
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_ATTRIBUTES_H_
