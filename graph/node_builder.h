// NodeBuilder and OpRecorder: adding a node of any op to a graph, also of ops that have no wrapper
// class.
//
//   Operation mul = OpRecorder(scope, "MatMul").Input(a).Input(b).Attr("transpose_a",
//   true).Finish();
//
//   Node* node;
//   absl::Status status = NodeBuilder("product", "MatMul").Input(a).Input(b).Finalize(graph,
//   &node);
//
// Inputs are given in the order of the op definition, a list of them by one call with a list.
// Attributes that follow from the inputs (types, lengths of lists) need not be given, nor those
// with a default.
#ifndef GRADFLOW_GRAPH_NODE_BUILDER_H_
#define GRADFLOW_GRAPH_NODE_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/attributes.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/ops.h"

#pragma GCC visibility push(default)
namespace gradflow {

class AttrValue;
class Graph;
class Node;
class NodeDef;
class OpDef;
class Scope;

// One output of a node.
struct NodeOut {
  NodeOut() = default;
  // An output of a node that is there.
  NodeOut(const Node* n, int32_t i = 0) : node(n), index(i) {}                   // NOLINT
  NodeOut(const Output& output) : node(output.node()), index(output.index()) {}  // NOLINT
  // The node, and the number of its output.
  const Node* node = nullptr;
  int32_t index = 0;
};

class NodeBuilder {
 public:
  // For code written for TensorFlow.
  using NodeOut = gradflow::NodeOut;

  // Begins a node.
  NodeBuilder(absl::string_view name, absl::string_view op);
  ~NodeBuilder();
  NodeBuilder(const NodeBuilder& other);
  NodeBuilder& operator=(const NodeBuilder& other) { return *this = NodeBuilder(other); }
  NodeBuilder(NodeBuilder&&) noexcept;
  NodeBuilder& operator=(NodeBuilder&&) noexcept;

  // The next input.
  NodeBuilder& Input(NodeOut source);
  NodeBuilder& Input(const Node* node, int32_t index = 0) { return Input(NodeOut(node, index)); }
  NodeBuilder& Input(const Output& output) { return Input(NodeOut(output)); }
  NodeBuilder& Input(absl::Span<const NodeOut> sources);
  // A dependency given twice counts once.
  NodeBuilder& ControlInput(const Node* node);
  NodeBuilder& ControlInputs(absl::Span<const Node* const> nodes);
  NodeBuilder& Device(absl::string_view device);
  // Wins over Device().
  NodeBuilder& AssignedDevice(absl::string_view device);
  // The last value given counts.
  template <typename T>
  NodeBuilder& Attr(absl::string_view name, const T& value) {
    if constexpr (std::is_convertible_v<const T&, absl::Span<const int32_t>>) {
      const absl::Span<const int32_t> ints = value;
      const std::vector<int64_t> wide(ints.begin(), ints.end());
      AddNodeAttr(name, absl::Span<const int64_t>(wide), def_.get());
    } else {
      AddNodeAttr(name, value, def_.get());
    }
    return *this;
  }
  template <typename T>
  NodeBuilder& Attr(absl::string_view name, std::initializer_list<T> values) {
    if constexpr (std::is_same_v<T, const char*>) {
      const std::vector<std::string> strings(values.begin(), values.end());
      return Attr(name, absl::Span<const std::string>(strings));
    } else {
      return Attr(name, absl::Span<const T>(values.begin(), values.size()));
    }
  }
  // Whether shapes are inferred and checked. They are unless a scope says otherwise.
  NodeBuilder& InferShapes(bool infer) { return infer_shapes_ = infer, *this; }

  // As it was given; the node may get another if that is taken.
  const std::string& node_name() const;

  // Adds the node. NOT_FOUND if the graph's registry does not have the op, otherwise
  // INVALID_ARGUMENT, beginning with "node 'name' (Op): " and saying what was expected and found;
  // then nothing is added, and *node (which may be null) is as it was. Call it once.
  absl::Status Finalize(Graph* graph, Node** node = nullptr);

 private:
  friend class OpRecorder;

  // A call of Input: `size` sources, or one that is no list (kSingle).
  static constexpr int kSingle = -1;
  struct Argument {
    int begin;
    int size;
  };

  // An attribute of the node, which has the type of an argument.
  struct TypeAttr {
    absl::string_view name;
    AttrValue* value = nullptr;
  };

  NodeBuilder(NodeDefPtr def, absl::string_view op);

  // Finalize, which may throw if there is no memory.
  absl::Status AddTo(Graph* graph, Node** node);
  absl::Status CheckSources(const Graph& graph, const OpDef& op_def) const;
  absl::Status InferAttrs(const OpDef& op_def);
  absl::Status InferAttrsFrom(const OpDef& op_def, int argument, TypeAttr* last);
  absl::Status CheckType(const OpDef& op_def, int argument, int i, int expected,
                         absl::string_view attr) const;
  absl::Status Mismatch(const OpDef& op_def, int argument, int i, absl::string_view what,
                        absl::string_view found, absl::string_view expected,
                        absl::string_view attr) const;
  std::string SourceName(const OpDef& op_def, int argument, int i) const;

  NodeDefPtr def_;
  absl::InlinedVector<NodeOut, 4> sources_;
  absl::InlinedVector<Argument, 4> arguments_;
  absl::InlinedVector<const Node*, 2> control_inputs_;
  bool assigned_device_ = false;
  bool infer_shapes_ = true;
};

// Adds one op to a scope, as the wrapper classes do: name, device, control dependencies, colocation
// and kernel label are the scope's, and so are errors. On a scope that has failed it does nothing.
class OpRecorder {
 public:
  // `scope` must live until Finish(), which is called once.
  OpRecorder(const Scope& scope, absl::string_view op);

  // A list in braces could be either of these: write Input{...} or InputList{...}.
  OpRecorder& Input(const gradflow::Input& input);
  OpRecorder& Input(const InputList& inputs);
  template <typename T>
  OpRecorder& Attr(absl::string_view name, const T& value) {
    if (live_) builder_.Attr(name, value);
    return *this;
  }
  template <typename T>
  OpRecorder& Attr(absl::string_view name, std::initializer_list<T> values) {
    if (live_) builder_.Attr(name, values);
    return *this;
  }
  // The new node, or an empty operation if the scope has failed.
  Operation Finish();

 private:
  bool CheckValue(const gradflow::Input& input, int i);

  const Scope& scope_;
  // Whether the scope was fine so far.
  bool live_;
  NodeBuilder builder_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_NODE_BUILDER_H_
