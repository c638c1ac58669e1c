// Reading and writing the attributes of nodes.
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

// The attribute that colocates a node, and what each of its values begins with.
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

// The attributes of a node, which it borrows.
class AttrSlice {
 public:
  AttrSlice(const NodeDef& node) : node_(&node) {}  // NOLINT: as in TensorFlow
  // Null if there is none of that name.
  const AttrValue* Find(StringPiece name) const { return gradflow::FindNodeAttr(*node_, name); }
  absl::Status Find(StringPiece name, const AttrValue** value) const {
    *value = Find(name);
    if (*value != nullptr) return absl::OkStatus();
    return errors::NotFound("node '", node_->name(), "' has no attribute '", std::string(name),
                            "'");
  }
  int size() const { return static_cast<int>(node_->attr().size()); }
  auto begin() const { return node_->attr().begin(); }
  auto end() const { return node_->attr().end(); }
  std::string SummarizeNode() const { return SummarizeNodeDef(*node_); }
  const NodeDef& node() const { return *node_; }

 private:
  const NodeDef* node_;
};

template <typename T>
absl::Status GetNodeAttr(const AttrSlice& attrs, StringPiece name, T* value) {
  return gradflow::GetNodeAttr(attrs.node(), name, value);
}
// False, and *value as it was, where GetNodeAttr has an error.
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
