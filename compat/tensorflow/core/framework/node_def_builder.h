// NodeDefBuilder: builds a NodeDef from named inputs. Sets inferred attributes and defaults.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_BUILDER_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_BUILDER_H_

#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {

class NodeDefBuilder {
 public:
  // An output of a node by the node's name.
  struct NodeOut {
    NodeOut(StringPiece n, int i, DataType dt) : node(n), index(i), data_type(dt) {}
    NodeOut() = default;
    std::string node;
    int index = 0;
    DataType data_type = DT_INVALID;
  };

  NodeDefBuilder(StringPiece name, StringPiece op_name,
                 OpRegistry::Handle registry = OpRegistry::Global());
  // REQUIRES: op_def outlives the builder.
  NodeDefBuilder(StringPiece name, const OpDef* op_def);

  // Add the inputs of the next argument of the definition.
  NodeDefBuilder& Input(StringPiece src_node, int src_index, DataType dt) {
    return Input(NodeOut(src_node, src_index, dt));
  }
  NodeDefBuilder& Input(const NodeOut& source);
  NodeDefBuilder& Input(gtl::ArraySlice<NodeOut> sources);
  NodeDefBuilder& Input(const FakeInputs& fake);
  NodeDefBuilder& ControlInput(StringPiece src_node);
  NodeDefBuilder& Device(StringPiece device);

  template <typename T>
  NodeDefBuilder& Attr(StringPiece name, const T& value) {
    AddNodeAttr(name, value, &node_def_);
    return *this;
  }
  template <typename T>
  NodeDefBuilder& Attr(StringPiece name, std::initializer_list<T> values) {
    if constexpr (std::is_same_v<T, const char*>) {
      return Attr(name, std::vector<std::string>(values.begin(), values.end()));
    } else {
      return Attr(name, gtl::ArraySlice<T>(values.begin(), values.size()));
    }
  }

  // Stores the node in *node_def. On error leaves *node_def unchanged and returns INVALID_ARGUMENT,
  // or NOT_FOUND for an op that is not registered.
  absl::Status Finalize(NodeDef* node_def) const;

  const std::string& node_name() const { return node_def_.name(); }
  const OpDef& op_def() const { return *op_def_; }

 private:
  struct Argument {
    std::vector<NodeOut> sources;
    bool is_list = false;
    bool is_fake = false;
    FakeInputs fake;
  };

  // Null if the op is not registered, in which case status_ is NOT_FOUND.
  const OpDef* op_def_ = nullptr;
  absl::Status status_;
  NodeDef node_def_;
  std::vector<Argument> arguments_;
  std::vector<std::string> control_inputs_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_BUILDER_H_
