// PlanGraph: the intermediate form of a plan, which passes rewrite before it is laid out.
//
// A PlanGraph owns its nodes, so passes may insert, replace and fuse them without changing the
// graph. A node of the plan refers to the nodes of the graph that it comes from, its origins, which
// errors, traces and fetches name. Nodes are numbered in the order of their creation and never
// renumbered. A node that no root needs remains until Prune() drops it from order().
//
// An input is a Value: an output of a node, a feed, or, for a control input, the completion of a
// node. Feeds have replaced all edges from the tensors that they feed.
//
// Thread safety: none. One pass runs at a time. Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_PLAN_GRAPH_H_
#define GRADFLOW_RUNTIME_PLAN_PLAN_GRAPH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/node.h"

namespace gradflow {

// The name and the origins of a node that a pass has added.
struct PlanNodeLabel {
  // For traces.
  std::string name;
  // The operation, such as "FusedMatMul" or "Copy".
  std::string op;
  // The nodes of the graph that it stands for; not empty. It computes the result of the last one.
  std::vector<const Node*> origins;
};

class PlanGraph {
 public:
  // A value that a node reads or a run fetches.
  struct Value {
    // The node, or kFeed.
    int32_t node;
    // The output of the node or the index of the feed, or kControl for the completion of the node.
    // A control input from a feed is always satisfied.
    int32_t output;
    friend bool operator==(Value a, Value b) { return a.node == b.node && a.output == b.output; }
    bool is_feed() const { return node == kFeed; }
    bool is_control() const { return output == kControl; }
  };
  static constexpr int32_t kFeed = -1;
  static constexpr int32_t kControl = -1;

  // A node that a pass adds.
  struct NewNode {
    PlanNodeLabel label;
    std::shared_ptr<const OpKernel> kernel;
    // The types of its outputs.
    DataTypeVector output_types;
    std::vector<Value> inputs;
    // Further nodes that it waits for.
    std::vector<int32_t> control_inputs;
    // True if the kernel has side effects or may wait for another kernel.
    bool stateful = false;
    // Index into devices().
    uint8_t device = 0;
  };

  int32_t num_nodes() const { return static_cast<int32_t>(nodes_.size()); }
  // The live nodes in topological order, as of the last Prune().
  absl::Span<const int32_t> order() const { return order_; }

  // ---- One node ----

  // Returns the node of the graph whose result `node` computes.
  const Node& origin(int32_t node) const { return *nodes_[node].origin; }
  // Returns true if the node's op, attributes and inputs are those of its origin, except for feeds.
  bool is_original(int32_t node) const { return nodes_[node].is_original; }
  // Returns true if another node has replaced this one.
  bool is_replaced(int32_t node) const { return nodes_[node].replaced_by >= 0; }
  int num_inputs(int32_t node) const { return nodes_[node].num_inputs; }
  // Data inputs first, then control inputs.
  int num_edges(int32_t node) const { return nodes_[node].num_edges; }
  Value edge(int32_t node, int i) const { return Resolve(edges_[nodes_[node].edges_begin + i]); }
  const DataTypeVector& output_types(int32_t node) const { return *nodes_[node].output_types; }
  bool stateful(int32_t node) const { return nodes_[node].stateful; }
  uint8_t device(int32_t node) const { return nodes_[node].device; }
  // Returns the kernel that a pass has set, or null if it is the origin's.
  const std::shared_ptr<const OpKernel>& kernel(int32_t node) const;
  // Returns true if the node is a constant made by SetConstant().
  bool has_known_value(int32_t node) const {
    return nodes_[node].kernel >= 0 && nodes_[node].label < 0;
  }
  // Returns the label of a node that a pass has added, or null.
  const PlanNodeLabel* label(int32_t node) const {
    return nodes_[node].label < 0 ? nullptr : &labels_[nodes_[node].label];
  }

  // ---- Feeds, roots and devices ----

  struct Feed {
    // "node:0".
    std::string name;
    DataType dtype = DT_INVALID;
    // The shape that the fed placeholder declares. Of unknown rank if it declares none, or if the
    // fed node is not a placeholder.
    PartialTensorShape shape;
  };
  absl::Span<const Feed> feeds() const { return feeds_; }

  // The fetched values in order, then the targets as control values.
  absl::Span<const Value> roots() const { return roots_; }
  int num_fetches() const { return num_fetches_; }
  // Returns the value that has replaced `value`, or `value` itself.
  Value Resolve(Value value) const;
  // For each node, the number of edges and roots that refer to it.
  std::vector<int32_t> CountUses() const;
  // The uses of a node's outputs.
  struct Use {
    int32_t count = 0;
    // The only use: a node and the index of its input; -1 for a root, and for a control input.
    int32_t reader = -1;
    int32_t input = -1;
    // True if no use is of another output than the first. Control uses are of none.
    bool first_output = true;
  };
  // By node.
  std::vector<Use> FindUses() const;
  // PlanOptions::devices. Feeds are on the first.
  absl::Span<const std::string> devices() const { return devices_; }

  // ---- Changes ----

  // Adds a node. It has no effect until other nodes or roots refer to it.
  int32_t AddNode(NewNode node);
  // Redirects all uses of `node` to `by`, which has the same outputs.
  void Replace(int32_t node, int32_t by);
  // Redirects uses of output i to by_outputs[i], and control inputs to `by`. Ignores by_outputs[i]
  // if output i is not used.
  void Replace(int32_t node, int32_t by, std::vector<Value> by_outputs);
  // Sets edge `i` of a node.
  void SetEdge(int32_t node, int i, Value value);
  // Sets fetch `i`.
  void SetRoot(int i, Value value);
  // Makes the node a constant without inputs, whose outputs `kernel` sets.
  void SetConstant(int32_t node, std::shared_ptr<const OpKernel> kernel);
  // Recomputes order() without the nodes that no root needs. Returns INTERNAL if there is a cycle.
  absl::Status Prune();

 private:
  friend class PlanGraphMaker;

  struct PlanNode {
    const Node* origin;
    const DataTypeVector* output_types;
    // Index into edges_.
    int64_t edges_begin;
    int32_t num_inputs;
    int32_t num_edges;
    // The node that replaces it, or -1.
    int32_t replaced_by = -1;
    // Index into replacements_ of the values that replace its outputs, or -1 if the outputs of
    // replaced_by do.
    int32_t replacements = -1;
    // Indexes into kernels_ and labels_, or -1.
    int32_t kernel = -1;
    int32_t label = -1;
    bool is_original = true;
    bool stateful = false;
    uint8_t device = 0;
  };

  std::vector<PlanNode> nodes_;
  std::vector<Value> edges_;
  std::vector<int32_t> order_;
  std::vector<Feed> feeds_;
  std::vector<Value> roots_;
  int num_fetches_ = 0;
  std::vector<Value> replacements_;
  std::vector<std::shared_ptr<const OpKernel>> kernels_;
  std::deque<PlanNodeLabel> labels_;
  std::deque<DataTypeVector> added_types_;
  std::vector<std::string> devices_ = {"/device:CPU:0"};
  bool is_pruned_ = true;
};

// Returns "node 'name' (Op): ", for errors. With a label, names all of its origins.
std::string PlanNodePrefix(const Node& origin, const PlanNodeLabel* label);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_GRAPH_H_
