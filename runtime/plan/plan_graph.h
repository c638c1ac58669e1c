// PlanGraph: the intermediate form of a plan, on which passes work before it is laid out.
//
// A PlanGraph owns its nodes, so passes may insert, replace and fuse them without a change to the
// graph. Nodes of the plan refer to the nodes of the graph that they come from (origins), which
// errors, traces and fetches name. Nodes are numbered in the order of their creation, and never
// renumbered. A node that no root needs stays until Prune() drops it from order().
//
// Inputs are values: an output of a node, a feed, or the end of a node for control inputs. A feed
// has replaced every edge from the tensor that it feeds.
//
// Thread safety: none; the pass that runs has it alone. Not for users.
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

// The name of a node that a pass has added, and the nodes of the graph that it stands for.
struct PlanNodeLabel {
  // For traces.
  std::string name;
  // The operation, as "FusedMatMul" or "Copy".
  std::string op;
  // Not empty. The last is the node whose result it computes.
  std::vector<const Node*> origins;
};

class PlanGraph {
 public:
  // A value that a node reads or a run fetches.
  struct Value {
    // The node, or kFeed.
    int32_t node;
    // The output of the node or the index of the feed, or kControl for the node's end. A control
    // input from a feed is always satisfied.
    int32_t output;
    friend bool operator==(Value a, Value b) { return a.node == b.node && a.output == b.output; }
    bool is_feed() const { return node == kFeed; }
    bool is_control() const { return output == kControl; }
  };
  static constexpr int32_t kFeed = -1;
  static constexpr int32_t kControl = -1;

  // A kernel and its node's place, as a pass adds it.
  struct NewNode {
    PlanNodeLabel label;
    std::shared_ptr<const OpKernel> kernel;
    // The types of its outputs.
    DataTypeVector output_types;
    std::vector<Value> inputs;
    // Nodes that it waits for besides.
    std::vector<int32_t> control_inputs;
    // True if the kernel has side effects or may wait for another.
    bool stateful = false;
    // Index into devices().
    uint8_t device = 0;
  };

  int32_t num_nodes() const { return static_cast<int32_t>(nodes_.size()); }
  // The live nodes in topological order, as of the last Prune().
  absl::Span<const int32_t> order() const { return order_; }

  // ---- One node ----

  // Returns the graph's node whose result this one computes.
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
    // The shape that the Placeholder declares; of unknown rank if it declares none, or the node is
    // not a Placeholder.
    PartialTensorShape shape;
  };
  absl::Span<const Feed> feeds() const { return feeds_; }

  // The values that the run fetches, in their order, and then its targets, as control values.
  absl::Span<const Value> roots() const { return roots_; }
  int num_fetches() const { return num_fetches_; }
  // Returns the value that stands for `value` now.
  Value Resolve(Value value) const;
  // For each node, the number of edges and roots that refer to it.
  std::vector<int32_t> CountUses() const;
  // The names of devices; "/device:CPU:0" is the first.
  absl::Span<const std::string> devices() const { return devices_; }

  // ---- Changes ----

  // Adds a node, which takes effect when other nodes or roots refer to it.
  int32_t AddNode(NewNode node);
  // Redirects every use of `node` to `by`, which has the same outputs.
  void Replace(int32_t node, int32_t by);
  // As above, with value by_outputs[i] for output i, and `by` for control inputs. A by_outputs[i]
  // of an output that nothing uses is ignored.
  void Replace(int32_t node, int32_t by, std::vector<Value> by_outputs);
  // Sets edge `i` of a node.
  void SetEdge(int32_t node, int i, Value value);
  // Makes the node a constant: `kernel` sets its outputs, and it has no inputs.
  void SetConstant(int32_t node, std::shared_ptr<const OpKernel> kernel);
  // Recomputes order(): drops nodes that no root needs. INTERNAL if there is a cycle.
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
    // The node that replaces it, or -1, and an index into replacements_, or -1 for the same
    // outputs.
    int32_t replaced_by = -1;
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

// Returns "node 'name' (Op): ", for errors. With a label, names all nodes that it stands for.
std::string PlanNodePrefix(const Node& origin, const PlanNodeLabel* label);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_GRAPH_H_
