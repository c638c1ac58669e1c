// Node: one node of a Graph, as a light view of its NodeDef and of what the graph knows beside it.
//
// Nodes are made by their graph, never move, and live as long as it. Reading them is thread-safe
// while no one adds to the graph.
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
class GraphImporter;
class Node;
class NodeDef;
class OpDef;
class OpRegistration;

// Owns a NodeDef, unless that is part of a protobuf arena.
struct NodeDefDeleter {
  // Deletes it, where the type is known.
  void operator()(NodeDef* def) const;
};
using NodeDefPtr = std::unique_ptr<NodeDef, NodeDefDeleter>;

// The types of a node's inputs and outputs. Nodes of a graph that have the same share one.
struct NodeTypes {
  // Lists are laid out.
  DataTypeVector inputs;
  DataTypeVector outputs;
};

// An edge from an output of one node to an input of another. A control edge has -1 for both
// indices.
class Edge {
 public:
  // From an output to an input.
  Edge(const Node* src, int src_output, const Node* dst, int dst_input)
      : src_(src), dst_(dst), src_output_(src_output), dst_input_(dst_input) {}
  // Both ends, for programs that hold nodes as TensorFlow's do; nodes have nothing to change.
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

// Of EdgeSet.
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

// Edges of a node, in order. Iterating gives pointers, `for (const Edge* edge : edges)`, which are
// good as long as the set is.
class EdgeSet {
 public:
  // For the containers' concepts.
  using const_iterator = internal::EdgeIterator;
  using iterator = const_iterator;
  using value_type = const Edge*;

  // Takes them over.
  explicit EdgeSet(std::vector<Edge> edges) : edges_(std::move(edges)) {}
  // As containers have them.
  const_iterator begin() const { return const_iterator(edges_.data()); }
  const_iterator end() const { return const_iterator(edges_.data() + edges_.size()); }
  size_t size() const { return edges_.size(); }
  bool empty() const { return edges_.empty(); }

 private:
  std::vector<Edge> edges_;
};

class Node {
 public:
  // Position of the node in the GraphDef, from 0.
  int id() const { return id_; }
  const std::string& name() const;
  // The op: "MatMul".
  const std::string& type_string() const;
  const NodeDef& def() const { return *def_; }
  AttrSlice attrs() const { return AttrSlice(*def_); }
  const OpDef& op_def() const;
  const OpRegistration& op() const { return *op_; }
  const Graph& graph() const { return *graph_; }
  const std::string& requested_device() const;
  bool IsConstant() const { return type_string() == "Const"; }

  // Data inputs and outputs; each element of a list is one.
  int num_inputs() const { return num_data_inputs_; }
  int num_outputs() const { return static_cast<int>(types_->outputs.size()); }
  // REQUIRES for these and output_shape: 0 <= i < num_inputs() (num_outputs())
  DataType input_type(int i) const { return sources_[i].node->output_type(sources_[i].output); }
  DataType output_type(int i) const { return types_->outputs[i]; }
  const DataTypeVector& output_types() const { return types_->outputs; }
  // What shape inference knows of output i.
  const PartialTensorShape& output_shape(int i) const { return output_shapes_[i]; }

  // NOT_FOUND without such an attribute, INVALID_ARGUMENT for another type.
  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(def(), name, value);
  }

  // Data edges in the order of the inputs, then control edges.
  EdgeSet in_edges() const;
  // In the order of the consumers. The first call for a graph takes time linear in it.
  EdgeSet out_edges() const;

  // The same without making a vector, for passes over whole graphs: where input i comes from, data
  // inputs first ([0, num_inputs())), then control inputs (output == -1). In an imported graph a
  // source may have a greater id than its consumer.
  struct Source {
    // The output that the input is.
    const Node* node = nullptr;
    int output = -1;
  };
  absl::Span<const Source> sources() const { return sources_; }

  // The NodeDef as text.
  std::string DebugString() const;

 private:
  friend class Graph;
  friend class GraphImporter;

  const Graph* graph_ = nullptr;
  NodeDef* def_ = nullptr;
  const OpRegistration* op_ = nullptr;
  // The types that inputs are to have by the op definition; those of their sources may be
  // references to them.
  const NodeTypes* types_ = nullptr;
  int id_ = 0;
  int num_data_inputs_ = 0;
  absl::InlinedVector<Source, 2> sources_;
  absl::InlinedVector<PartialTensorShape, 1> output_shapes_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_NODE_H_
