// Access to the attributes of nodes.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_UTIL_H_

#include <string>
#include <vector>

#include "gradflow/core/attributes.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

// The colocation attribute of nodes, and the prefix of its values.
inline constexpr const char* kColocationAttrName = "_class";
inline constexpr const char* kColocationGroupPrefix = "loc:@";

using gradflow::AddNodeAttr;
using gradflow::AreAttrValuesEqual;
using gradflow::AttrValueHasType;
using gradflow::GetNodeAttr;
using gradflow::ParseAttrValue;
using gradflow::SetAttrValue;
using gradflow::SummarizeAttrValue;
using gradflow::SummarizeNodeDef;

// A view of the attributes of a node. Borrows the node.
class AttrSlice : public gradflow::AttrSlice {
 public:
  using gradflow::AttrSlice::AttrSlice;
  AttrSlice(const gradflow::AttrSlice& other) : gradflow::AttrSlice(other) {}  // NOLINT
  auto begin() const { return node().attr().begin(); }
  auto end() const { return node().attr().end(); }
};

template <typename T>
absl::Status GetNodeAttr(const AttrSlice& attrs, StringPiece name, T* value) {
  return gradflow::GetNodeAttr(attrs.node(), name, value);
}
// Returns false and leaves *value unchanged if GetNodeAttr returns an error.
template <typename T>
bool TryGetNodeAttr(const AttrSlice& attrs, StringPiece name, T* value) {
  return GetNodeAttr(attrs, name, value).ok();
}
template <typename T>
bool GetNodeAttrSimple(const AttrSlice& attrs, StringPiece name, T* value) {
  return GetNodeAttr(attrs, name, value).ok();
}
inline bool HasNodeAttr(const NodeDef& node, StringPiece name) {
  return gradflow::FindNodeAttr(node, name) != nullptr;
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_UTIL_H_
