// NodeDefBuilder: builds a NodeDef from named inputs. Sets inferred attributes and defaults.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_BUILDER_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_BUILDER_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {

class NodeDefBuilder {
 public:
  // An output of a node, given by the node's name.
  struct NodeOut {
    NodeOut(absl::string_view n, int i, DataType dt) : node(n), index(i), data_type(dt) {}
    NodeOut() = default;
    void Reset(absl::string_view n, int i, DataType dt) { *this = NodeOut(n, i, dt); }
    std::string node;
    int index = 0;
    DataType data_type = DT_INVALID;
  };

  NodeDefBuilder(absl::string_view name, absl::string_view op_name,
                 const OpRegistryInterface* op_registry = OpRegistry::Global());
  // REQUIRES: op_def outlives the builder.
  NodeDefBuilder(absl::string_view name, const OpDef* op_def);

  // Add the inputs for the next argument of the definition.
  NodeDefBuilder& Input(absl::string_view src_node, int src_index, DataType dt) {
    return Input(NodeOut(src_node, src_index, dt));
  }
  NodeDefBuilder& Input(const NodeOut& source);
  NodeDefBuilder& Input(gtl::ArraySlice<NodeOut> sources);
  NodeDefBuilder& Input(const FakeInputs& fake);
  NodeDefBuilder& ControlInput(absl::string_view src_node);
  NodeDefBuilder& Device(absl::string_view device);

  // Set an attribute. It is an error if the attribute already has another value.
  template <typename T>
  NodeDefBuilder& Attr(absl::string_view name, const T& value) {
    AttrValue attr;
    SetAttrValue(value, &attr);
    return SetAttr(name, attr);
  }
  template <typename T>
  NodeDefBuilder& Attr(absl::string_view name, std::initializer_list<T> values) {
    return Attr(name, gtl::ArraySlice<T>(values.begin(), values.size()));
  }

  // Stores the node in *node_def, which may be null. On error, returns INVALID_ARGUMENT and does
  // not change *node_def. Does not check the attributes; see ValidateNodeDef.
  absl::Status Finalize(NodeDef* node_def, bool consume = false);

  const std::string& node_name() const { return node_def_.name(); }
  const OpDef& op_def() const { return *op_def_; }

 private:
  // Returns the next argument. If there is none, records an error and returns null.
  const OpDef::ArgDef* NextArg();
  void AddSources(const OpDef::ArgDef& arg, gtl::ArraySlice<NodeOut> sources);
  void AddList(const OpDef::ArgDef& arg, gtl::ArraySlice<NodeOut> sources);
  // Computes the inputs that a FakeInput represents.
  absl::Status FakeSources(const OpDef::ArgDef& arg, const FakeInputs& fake, bool* is_list,
                           std::vector<NodeOut>* sources) const;
  // Checks the type of an input against the definition, or else against `expected`.
  void CheckType(const OpDef::ArgDef& arg, DataType expected, DataType found);
  void CheckRef(const OpDef::ArgDef& arg, DataType found);
  NodeDefBuilder& SetAttr(absl::string_view name, const AttrValue& value);

  // Null if the op is not registered.
  const OpDef* op_def_ = nullptr;
  NodeDef node_def_;
  int next_arg_ = 0;
  std::vector<std::string> control_inputs_;
  std::vector<std::string> errors_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_BUILDER_H_
