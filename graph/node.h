// Node: a node of a Graph, with its op, inputs, types and shapes.
//
// A graph owns its nodes. A node lives as long as its graph and never moves.
//
// Thread safety: nodes may be read from several threads while no thread adds to the graph.
#ifndef GRADFLOW_GRAPH_NODE_H_
#define GRADFLOW_GRAPH_NODE_H_

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;
class Node;
class NodeDef;
class OpDef;
class OpRegistration;
class WhileContext;

// Deletes a NodeDef on the heap. Leaves a NodeDef in a protobuf arena to the arena.
struct NodeDefDeleter {
  // Defined where the type is complete.
  void operator()(NodeDef* def) const;
};
using NodeDefPtr = std::unique_ptr<NodeDef, NodeDefDeleter>;

// The types of a node's inputs and outputs. All nodes of a graph with the same types share them.
struct NodeTypes {
  // Lists are flattened.
  DataTypeVector inputs;
  DataTypeVector outputs;
};

// An edge from an output of one node to an input of another. Both indices of a control edge are -1.
class Edge {
 public:
  // An edge from an output to an input.
  Edge(const Node* src, int src_output, const Node* dst, int dst_input)
      : src_(src), dst_(dst), src_output_(src_output), dst_input_(dst_input) {}
  // The ends. Not const, as in TensorFlow's API, although no member of a node changes it.
  Node* src() const { return const_cast<Node*>(src_); }
  Node* dst() const { return const_cast<Node*>(dst_); }
  int src_output() const { return src_output_; }
  int dst_input() const { return dst_input_; }
  bool IsControlEdge() const { return src_output_ < 0; }

 private:
  const Node* src_;
  const Node* dst_;
  int src_output_;
  int dst_input_;
};

namespace internal {

class GraphImpl;

// The iterator of EdgeSet.
class EdgeIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = const Edge*;
  using difference_type = std::ptrdiff_t;
  using pointer = const value_type*;
  using reference = value_type;
  explicit EdgeIterator(const Edge* edge = nullptr) : edge_(edge) {}
  const Edge* operator*() const { return edge_; }
  EdgeIterator& operator++() { return ++edge_, *this; }
  EdgeIterator operator++(int) { return EdgeIterator(edge_++); }
  friend bool operator==(EdgeIterator a, EdgeIterator b) { return a.edge_ == b.edge_; }
  friend bool operator!=(EdgeIterator a, EdgeIterator b) { return a.edge_ != b.edge_; }

 private:
  const Edge* edge_;
};

}  // namespace internal

// The edges of a node, in order: `for (const Edge* edge : edges)`. Pointers are valid while the set
// lives.
class EdgeSet {
 public:
  // The types that containers have.
  using const_iterator = internal::EdgeIterator;
  using iterator = const_iterator;
  using value_type = const Edge*;

  // Takes ownership of the edges.
  explicit EdgeSet(std::vector<Edge> edges) : edges_(std::move(edges)) {}
  // The members that containers have.
  const_iterator begin() const { return const_iterator(edges_.data()); }
  const_iterator end() const { return const_iterator(edges_.data() + edges_.size()); }
  size_t size() const { return edges_.size(); }
  bool empty() const { return edges_.empty(); }

 private:
  std::vector<Edge> edges_;
};

class Node {
 public:
  // The position of the node in the GraphDef, from 0.
  int id() const { return id_; }
  const std::string& name() const;
  // The name of the op, such as "MatMul".
  const std::string& type_string() const;
  const NodeDef& def() const { return *def_; }
  AttrSlice attrs() const { return AttrSlice(*def_); }
  const OpDef& op_def() const;
  const OpRegistration& op() const { return *op_; }
  const Graph& graph() const { return *graph_; }
  const std::string& requested_device() const;
  bool IsConstant() const { return type_string() == "Const"; }
  // Return true for the ops of branches and loops, including reference forms such as RefSwitch.
  bool IsSwitch() const;
  bool IsMerge() const;
  bool IsEnter() const;
  bool IsExit() const;
  bool IsNextIteration() const;
  bool IsLoopCond() const;
  // Returns the loop that an Exit node ends, if BuildWhileLoop() (while_loop.h) has made it;
  // otherwise null.
  WhileContext* while_ctx() const;
  // Returns false if the op is not registered, or if the node depends on a node whose op is not
  // registered (ImportGraphDefOptions::allow_missing_ops). An unresolved node has no inputs and no
  // outputs.
  bool is_resolved() const { return is_resolved_; }
  // Returns OK, or NOT_FOUND with the names of this node and of the missing op.
  absl::Status CheckResolved() const;

  // Data inputs and outputs; each element of a list counts.
  int num_inputs() const { return num_data_inputs_; }
  int num_outputs() const { return static_cast<int>(types_->outputs.size()); }
  // REQUIRES, here and in output_shape(): 0 <= i < num_inputs() or num_outputs()
  DataType input_type(int i) const { return sources_[i].node->output_type(sources_[i].output); }
  DataType output_type(int i) const { return types_->outputs[i]; }
  // Returns true if the op definition declares input i as a reference to a variable. The source of
  // any other input may also be a reference; the input then reads the value.
  bool takes_reference(int i) const { return IsRefType(types_->inputs[i]); }
  const DataTypeVector& output_types() const { return types_->outputs; }
  // The inferred shape of output i.
  const PartialTensorShape& output_shape(int i) const {
    return output_shapes_[static_cast<ptrdiff_t>(i) * shape_step_];
  }

  // Reads an attribute. Returns NOT_FOUND if the node has no attribute of this name, and
  // INVALID_ARGUMENT if the attribute has another type.
  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(def(), name, value);
  }

  // Returns data edges in the order of the inputs, then control edges.
  EdgeSet in_edges() const;
  // Returns edges in the order of the consumers. The first call for a graph takes time linear in
  // the size of the graph.
  EdgeSet out_edges() const;

  // The sources of the inputs, without the cost of making edges. Data inputs come first ([0,
  // num_inputs())), then control inputs (output == -1). In an imported graph a source may have a
  // greater id than its consumer.
  struct Source {
    // The node that the value comes from.
    const Node* node = nullptr;
    // Its output; negative for a control input.
    int output = -1;
  };
  absl::Span<const Source> sources() const { return sources_; }

  // Returns the NodeDef with types and shapes of the outputs, in one line.
  std::string DebugString() const;

 private:
  friend class internal::GraphImpl;

  const Graph* graph_ = nullptr;
  NodeDef* def_ = nullptr;
  const OpRegistration* op_ = nullptr;
  // The input types follow the op definition; a source may be a reference to the type.
  const NodeTypes* types_ = nullptr;
  int id_ = 0;
  int num_data_inputs_ = 0;
  absl::InlinedVector<Source, 2> sources_;
  // The shape of output i is at i * shape_step_. The step is 0 if all outputs have the same shape.
  // Nodes may share shapes.
  const PartialTensorShape* output_shapes_ = nullptr;
  int shape_step_ = 0;
  bool is_resolved_ = true;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_NODE_H_
