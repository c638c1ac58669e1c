// NodeBuilder and OpBuilder: add a node of any op to a graph, even if the op has no generated
// class.
//
//   Operation mul =
//       OpBuilder(scope, "MatMul").Input(a).Input(b).Attr("transpose_a", true).Finish();
//
//   Node* node;
//   absl::Status status =
//       NodeBuilder("product", "MatMul").Input(a).Input(b).Finalize(graph, &node);
//
// Each call of Input passes one input, in the order of the op definition. A list is one input.
// Attributes that follow from the inputs (types, lengths of lists) and attributes with a default
// may be omitted.
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

namespace internal {
struct CheckedNodeCache;
enum class Attrs;
}  // namespace internal

// One output of a node.
struct NodeOut {
  NodeOut() = default;
  // Output `i` of a node.
  NodeOut(const Node* n, int32_t i = 0) : node(n), index(i) {}                   // NOLINT
  NodeOut(const Output& output) : node(output.node()), index(output.index()) {}  // NOLINT
  // The node, and the index of its output.
  const Node* node = nullptr;
  int32_t index = 0;
};

class NodeBuilder {
 public:
  // For code written for TensorFlow.
  using NodeOut = gradflow::NodeOut;

  // Starts a node.
  NodeBuilder(absl::string_view name, absl::string_view op);
  ~NodeBuilder();
  NodeBuilder(const NodeBuilder& other);
  // A move is a copy: a builder that has been moved from can still be used.
  NodeBuilder& operator=(const NodeBuilder& other);

  // Adds the next input.
  NodeBuilder& Input(NodeOut source);
  NodeBuilder& Input(const Node* node, int32_t index = 0) { return Input(NodeOut(node, index)); }
  NodeBuilder& Input(const Output& output) { return Input(NodeOut(output)); }
  NodeBuilder& Input(absl::Span<const NodeOut> sources);
  // Adds a control input. Adding the same node again has no effect.
  NodeBuilder& ControlInput(const Node* node);
  NodeBuilder& ControlInputs(absl::Span<const Node* const> nodes);
  NodeBuilder& Device(absl::string_view device);
  // Overrides Device().
  NodeBuilder& AssignedDevice(absl::string_view device);
  // Sets an attribute. A later value replaces an earlier one.
  template <typename T>
  NodeBuilder& Attr(absl::string_view name, const T& value) {
    // Null after the node has been made.
    if (def_ == nullptr) return *this;
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
  // Sets whether shapes are inferred and checked. The default is true.
  NodeBuilder& InferShapes(bool infer) { return infer_shapes_ = infer, *this; }

  // The name that was passed to the constructor.
  const std::string& node_name() const;

  // Adds the node to the graph and stores it in *node; `node` may be null. A builder makes one
  // node. Returns NOT_FOUND if there is no such op or function, UNIMPLEMENTED if the op is
  // deprecated, FAILED_PRECONDITION if an earlier call has used up the builder, RESOURCE_EXHAUSTED
  // if memory runs out, otherwise INVALID_ARGUMENT. Errors of the node begin with
  // "node 'name' (Op): ". On error the graph and *node are unchanged.
  absl::Status Finalize(Graph* graph, Node** node = nullptr);

 private:
  friend class OpBuilder;

  // A call of Input: a list of `size` sources, or a single one (kSingle).
  static constexpr int kSingle = -1;
  struct Argument {
    int begin;
    int size;
  };

  // A type attribute of the node.
  struct TypeAttr {
    absl::string_view name;
    AttrValue* value = nullptr;
  };

  NodeBuilder(NodeDefPtr def, absl::string_view op);

  // Like Finalize, but throws if memory runs out.
  absl::Status AddTo(Graph* graph, Node** node);
  absl::Status CheckSources(const Graph& graph, const OpDef& op_def) const;
  absl::Status MakeAttrs(const internal::CheckedNodeCache& checked, internal::Attrs* attrs);
  bool HasInputTypes(const DataTypeVector& types) const;
  void AddInputs(absl::InlinedVector<Node::Source, 4>* sources);
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
  // May contain a node several times; it is written once.
  absl::InlinedVector<const Node*, 2> control_inputs_;
  // True if any argument is a list.
  bool has_list_ = false;
  bool assigned_device_ = false;
  bool infer_shapes_ = true;
};

// Adds one op to a scope, like the generated classes. The scope provides name, device, control
// dependencies, colocation and kernel label, and keeps the first error. Does nothing if the scope
// has failed.
class OpBuilder {
 public:
  // REQUIRES: `scope` outlives the call of Finish(), which is made once.
  OpBuilder(const Scope& scope, absl::string_view op);

  // Adds the next input. A list in braces is ambiguous: write Input{...} or InputList{...}.
  OpBuilder& Input(const gradflow::Input& input);
  OpBuilder& Input(const InputList& inputs);
  template <typename T>
  OpBuilder& Attr(absl::string_view name, const T& value) {
    if (live_) builder_.Attr(name, value);
    return *this;
  }
  template <typename T>
  OpBuilder& Attr(absl::string_view name, std::initializer_list<T> values) {
    if (live_) builder_.Attr(name, values);
    return *this;
  }
  // Adds the node. Returns an empty operation if the scope has failed.
  Operation Finish();

 private:
  bool CheckValue(const gradflow::Input& input, int i);

  const Scope& scope_;
  // True if the scope has been ok so far.
  bool live_;
  NodeBuilder builder_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_NODE_BUILDER_H_
