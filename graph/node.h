// Node: a node of a Graph, with its op, inputs, types and shapes.
//
// A node is owned by its graph, lives as long as it, and never moves.
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

// Deletes a NodeDef that is on the heap, and leaves one of a protobuf arena to the arena.
struct NodeDefDeleter {
  // Defined where the type is complete.
  void operator()(NodeDef* def) const;
};
using NodeDefPtr = std::unique_ptr<NodeDef, NodeDefDeleter>;

// The types of a node's inputs and outputs, shared by all nodes of a graph that have the same.
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

// The edges of a node, in order: `for (const Edge* edge : edges)`. Pointers are valid as long as
// the set.
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

  // Data inputs and outputs; each element of a list counts.
  int num_inputs() const { return num_data_inputs_; }
  int num_outputs() const { return static_cast<int>(types_->outputs.size()); }
  // REQUIRES for these and output_shape: 0 <= i < num_inputs() (num_outputs())
  DataType input_type(int i) const { return sources_[i].node->output_type(sources_[i].output); }
  DataType output_type(int i) const { return types_->outputs[i]; }
  // Returns true if input i is a reference to a variable by the definition of the op. An input that
  // is not may have a reference for its source, and reads the value then.
  bool takes_reference(int i) const { return IsRefType(types_->inputs[i]); }
  const DataTypeVector& output_types() const { return types_->outputs; }
  // The inferred shape of output i.
  const PartialTensorShape& output_shape(int i) const {
    return output_shapes_[static_cast<ptrdiff_t>(i) * shape_step_];
  }

  // Reads an attribute. NOT_FOUND if the node has none of this name, INVALID_ARGUMENT if it has
  // another type.
  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(def(), name, value);
  }

  // Returns data edges in the order of the inputs, then control edges.
  EdgeSet in_edges() const;
  // Returns edges in the order of the consumers. The first call for a graph takes time linear in
  // the graph.
  EdgeSet out_edges() const;

  // The sources of the inputs without making edges, for passes over whole graphs: data inputs first
  // ([0, num_inputs())), then control inputs (output == -1). In an imported graph a source may have
  // a greater id than its consumer.
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
  // The input types are those of the op definition; sources may have references to them.
  const NodeTypes* types_ = nullptr;
  int id_ = 0;
  int num_data_inputs_ = 0;
  absl::InlinedVector<Source, 2> sources_;
  // The shape of output i is at i * shape_step_, which is 0 if all outputs have one shape. Nodes
  // may share shapes.
  const PartialTensorShape* output_shapes_ = nullptr;
  int shape_step_ = 0;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_NODE_H_
