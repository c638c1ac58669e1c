// Access to the attributes of nodes, and the types of their inputs and outputs.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_UTIL_H_

#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/status.h"

namespace gradflow {
class Node;
}  // namespace gradflow

namespace tensorflow {

// The colocation attribute of nodes, and the prefix of its values.
inline constexpr const char* kColocationAttrName = "_class";
inline constexpr const char* kColocationGroupPrefix = "loc:@";

using gradflow::AddDefaultsToNodeDef;
using gradflow::GetNodeAttr;
using gradflow::InOutTypesForNode;
using gradflow::NameRangeMap;
using gradflow::NameRangesForNode;
using gradflow::StripDefaultsFromNodeDef;
using gradflow::SummarizeNodeDef;

using AttrValueMap = protobuf::Map<std::string, AttrValue>;

// A view of the attributes of a node, or of a map of attributes. Borrows the node or map.
class AttrSlice {
 public:
  // A view without attributes.
  AttrSlice();
  AttrSlice(const NodeDef& node) : node_(&node) {}                          // NOLINT
  AttrSlice(const gradflow::AttrSlice& other) : AttrSlice(other.node()) {}  // NOLINT
  explicit AttrSlice(const AttrValueMap* attrs) : attrs_(attrs) {}

  int size() const { return static_cast<int>(attrs().size()); }
  auto begin() const { return attrs().begin(); }
  auto end() const { return attrs().end(); }
  // Return null, or NOT_FOUND with *value null, if the attribute does not exist.
  const AttrValue* Find(absl::string_view name) const;
  absl::Status Find(absl::string_view name, const AttrValue** value) const;
  const AttrValue* FindByString(const std::string& name) const { return Find(name); }
  absl::Status FindByString(const std::string& name, const AttrValue** value) const {
    return Find(name, value);
  }

  // Memory for EqualAttrs. Not used.
  struct Scratch {
    std::string a;
    std::string b;
  };
  // Returns true if both views have the same attributes.
  bool EqualAttrs(const AttrSlice& other, Scratch* scratch) const;
  // Return the node, or its attributes, on one line.
  std::string SummarizeNode() const;
  std::string DebugString() const;

  // Returns the node. If there is none, stores a node with only the attributes in *storage, and
  // returns that node. Not in TensorFlow.
  const NodeDef& ToNode(NodeDef* storage) const;

 private:
  const AttrValueMap& attrs() const { return node_ != nullptr ? node_->attr() : *attrs_; }

  const NodeDef* node_ = nullptr;
  const AttrValueMap* attrs_ = nullptr;
};

// ---- Reading. GetNodeAttr returns NOT_FOUND if there is no attribute `name`, and INVALID_ARGUMENT
// if its value has another type. Pointers are borrowed from the slice's attributes ----

template <typename T>
absl::Status GetNodeAttr(const AttrSlice& attrs, absl::string_view name, T* value) {
  // Reads values of a few types as messages, because core has no function for these types.
  if constexpr (std::is_same_v<T, NameAttrList> || std::is_same_v<T, TensorShapeProto> ||
                std::is_same_v<T, TensorProto> || std::is_same_v<T, std::vector<NameAttrList>> ||
                std::is_same_v<T, std::vector<TensorShapeProto>> ||
                std::is_same_v<T, std::vector<TensorShape>> ||
                std::is_same_v<T, const NameAttrList*> || std::is_same_v<T, const TensorProto*> ||
                std::is_same_v<T, std::vector<const std::string*>> ||
                std::is_same_v<T, std::vector<const TensorShapeProto*>>) {
    return compat_internal::GetMessageAttr(attrs.Find(name), name, value);
  } else {
    NodeDef storage;
    return gradflow::GetNodeAttr(attrs.ToNode(&storage), name, value);
  }
}
template <typename T>
StatusOr<T> GetNodeAttr(const AttrSlice& attrs, absl::string_view name) {
  T value;
  TF_RETURN_IF_ERROR(GetNodeAttr(attrs, name, &value));
  return value;
}
// Return false and leave *value unchanged if GetNodeAttr returns an error.
template <typename T>
bool TryGetNodeAttr(const AttrSlice& attrs, absl::string_view name, T* value) {
  return GetNodeAttr(attrs, name, value).ok();
}
template <typename T>
bool GetNodeAttrSimple(const AttrSlice& attrs, absl::string_view name, T* value) {
  return GetNodeAttr(attrs, name, value).ok();
}
// Returns "" if the attribute does not exist or is not a string.
const std::string& GetNodeAttrString(const AttrSlice& attrs, absl::string_view name);
inline bool HasNodeAttr(const NodeDef& node, absl::string_view name) {
  return gradflow::FindNodeAttr(node, name) != nullptr;
}

// ---- Writing ----

using gradflow::AddNodeAttr;

// Value types that gradflow's function does not accept.
#define GRADFLOW_COMPAT_ADD_NODE_ATTR(...)                                                   \
  inline void AddNodeAttr(absl::string_view name, const __VA_ARGS__& value, NodeDef* node) { \
    ::tensorflow::SetAttrValue(value, &(*node->mutable_attr())[std::string(name)]);          \
  }
GRADFLOW_COMPAT_ADD_NODE_ATTR(TensorShapeProto)
GRADFLOW_COMPAT_ADD_NODE_ATTR(TensorProto)
GRADFLOW_COMPAT_ADD_NODE_ATTR(NameAttrList)
GRADFLOW_COMPAT_ADD_NODE_ATTR(std::vector<const char*>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(std::vector<TensorShape>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(std::vector<TensorShapeProto>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(std::vector<TensorProto>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(std::vector<NameAttrList>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(gtl::ArraySlice<const char*>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(gtl::ArraySlice<TensorShape>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(gtl::ArraySlice<TensorShapeProto>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(gtl::ArraySlice<TensorProto>)
GRADFLOW_COMPAT_ADD_NODE_ATTR(gtl::ArraySlice<NameAttrList>)
#undef GRADFLOW_COMPAT_ADD_NODE_ATTR
template <typename T>
void AddNodeAttr(absl::string_view name, std::initializer_list<T> values, NodeDef* node) {
  AddNodeAttr(name, gtl::ArraySlice<T>(values.begin(), values.size()), node);
}
template <typename T>
void AddAttr(absl::string_view name, const T& value, AttrValueMap* map) {
  SetAttrValue(value, &(*map)[std::string(name)]);
}

// ---- Types. These functions return INVALID_ARGUMENT if attributes are missing, or if there is no
// such input or output ----

absl::Status InputTypeForNode(const NodeDef& node, const OpDef& op_def, int input_port,
                              DataType* input_type);
absl::Status InputTypesForNode(const NodeDef& node, const OpDef& op_def, DataTypeVector* inputs);
absl::Status OutputTypeForNode(const NodeDef& node, const OpDef& op_def, int output_port,
                               DataType* output_type);
absl::Status OutputTypesForNode(const AttrSlice& attrs, const OpDef& op_def,
                                DataTypeVector* outputs);
inline absl::Status OutputTypesForNode(const NodeDef& node, const OpDef& op_def,
                                       DataTypeVector* outputs) {
  return OutputTypesForNode(AttrSlice(node), op_def, outputs);
}
absl::Status NumOutputsForNode(const NodeDef& node, const OpDef& op_def, int* num_outputs);
// Returns the index of the argument that contains input (output) `port_id`, or -1.
int OpPortIdToArgId(const NodeDef& node, const protobuf::RepeatedPtrField<OpDef::ArgDef>& args,
                    int port_id);
absl::Status NameRangesForNode(const AttrSlice& attrs, const OpDef& op_def, NameRangeMap* inputs,
                               NameRangeMap* outputs);
absl::Status NameRangesForNode(const gradflow::Node& node, const OpDef& op_def,
                               NameRangeMap* inputs, NameRangeMap* outputs);

// ---- Whole nodes ----

// Returns INVALID_ARGUMENT unless the node has the attributes and the inputs of the op. This is an
// object, because a function would be ambiguous with gradflow's function.
struct ValidateNodeDefFunction {
  absl::Status operator()(const NodeDef& node, const OpDef& op_def) const;
};
inline constexpr ValidateNodeDefFunction ValidateNodeDef;

// Returns INVALID_ARGUMENT unless the name and the inputs are valid in a graph, as opposed to a
// function. Control inputs must follow data inputs.
absl::Status ValidateExternalNodeDefSyntax(const NodeDef& node);

// Return "{{node name}}", for messages. Uses the original names of the node if it has any.
std::string FormatNodeDefForError(const NodeDef& node);
std::string FormatNodeForError(const gradflow::Node& node);
// Appends the node to a message. If the message already contains a node, only appends the name,
// unless multiple nodes are allowed.
absl::Status AttachDef(const absl::Status& status, const NodeDef& node,
                       bool allow_multiple_formatted_node = false);
absl::Status AttachDef(const absl::Status& status, const gradflow::Node& node,
                       bool allow_multiple_formatted_node = false);

// Adds a prefix and a suffix to the name of the node, and to the frame of an Enter node.
absl::Status AddPrefixAndSuffixToNode(absl::string_view prefix, absl::string_view suffix,
                                      NodeDef* node, bool uniquify_frame_name = true);
// Changes the names of colocated nodes: adds the prefix to names in `match`, and replaces names
// that are keys of the map.
absl::Status MaybeAddPrefixToColocationConstraints(const std::unordered_set<std::string>& match,
                                                   absl::string_view prefix, NodeDef* node);
absl::Status MaybeUpdateColocationConstraintsWithMap(
    const std::map<absl::string_view, absl::string_view>& node_name_map, NodeDef* node);
// Turns the node into a NoOp. Data inputs become control inputs.
void ChangeToNoOp(NodeDef* node);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_UTIL_H_
