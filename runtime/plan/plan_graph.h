// PlanGraph: the intermediate form of a plan, which passes rewrite before it is laid out.
//
// A PlanGraph owns its nodes, so passes may insert, replace and fuse them without changing the
// graph. A node of the plan refers to its origins, the nodes of the graph that it comes from.
// Errors, traces and fetches name the origins. Nodes are numbered in order of creation and never
// renumbered. A node that no root needs remains until Prune() drops it from order().
//
// An input is a Value: an output of a node, a feed, or, for a control input, the completion of a
// node. Feeds have replaced all edges from the tensors that they feed.
//
// Thread safety: not thread-safe; one pass runs at a time. Internal.
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
#include "gradflow/runtime/plan/call_site.h"

namespace gradflow {

// A node of the session's graph or, with a call site, of a function that is called there.
struct PlanOrigin {
  PlanOrigin(const Node* origin, const CallSite* call_site = nullptr)  // NOLINT: a node is one
      : node(origin), site(call_site) {}
  // Returns "caller/name": the names of the calling nodes and of the node.
  std::string name() const;

  const Node* node;
  const CallSite* site;
};

// The name and the origins of a node that a pass has added.
struct PlanNodeLabel {
  // For traces.
  std::string name;
  // The operation, such as "FusedMatMul" or "Copy".
  std::string op;
  // The nodes of the graph that it stands for; not empty. It computes the result of the last one.
  std::vector<PlanOrigin> origins;
};

class PlanGraph;

// The graphs of the plans of a loop that a pass has made of version 1 control flow
// (convert_loops.cc). The feeds of `entry` are the inputs of the loop. Both graphs fetch the
// condition of the loop and then its state, which `iteration` is fed. The outputs of the loop are
// the first values of the state.
struct LoopGraphs;

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
    // True if the node runs even if nodes that it waits for are in a branch that is not taken.
    bool ignores_dead_controls = false;
    // Makes the node a loop. It then has no kernel.
    std::shared_ptr<LoopGraphs> loop;
  };

  // A graph without nodes. `devices` are PlanOptions::devices.
  explicit PlanGraph(absl::Span<const std::string> devices = {}) {
    if (!devices.empty()) devices_.assign(devices.begin(), devices.end());
  }

  int32_t num_nodes() const { return static_cast<int32_t>(nodes_.size()); }
  // The live nodes in topological order, as of the last Prune().
  absl::Span<const int32_t> order() const { return order_; }

  // ---- One node ----

  // Returns the node of the graph whose result `node` computes.
  const Node& origin(int32_t node) const { return *nodes_[node].origin; }
  // Returns the call of the function that the node of the graph belongs to, or null.
  const CallSite* site(int32_t node) const { return nodes_[node].site; }
  PlanOrigin origin_at_site(int32_t node) const { return {&origin(node), site(node)}; }
  // Returns true if the node has the op, attributes and inputs of its origin, except for feeds.
  bool is_original(int32_t node) const { return nodes_[node].is_original; }
  // Returns true if another node has replaced this one.
  bool is_replaced(int32_t node) const { return nodes_[node].replaced_by >= 0; }
  int num_inputs(int32_t node) const { return nodes_[node].num_inputs; }
  // Edges are the data inputs, followed by the control inputs.
  int num_edges(int32_t node) const { return nodes_[node].num_edges; }
  Value edge(int32_t node, int i) const { return Resolve(edges_[nodes_[node].edges_begin + i]); }
  const DataTypeVector& output_types(int32_t node) const { return *nodes_[node].output_types; }
  bool stateful(int32_t node) const { return nodes_[node].stateful; }
  uint8_t device(int32_t node) const { return nodes_[node].device; }
  // Returns the kernel that a pass has set, or null if the node has the kernel of its origin.
  const std::shared_ptr<const OpKernel>& kernel(int32_t node) const;
  // Returns true if the node is a constant made by SetConstant(), here or for an earlier plan.
  bool has_known_value(int32_t node) const {
    return nodes_[node].kernel >= 0 && nodes_[node].label < 0;
  }
  // Returns the graphs of a loop that a pass has added, or null.
  const std::shared_ptr<LoopGraphs>& loop(int32_t node) const;
  bool ignores_dead_controls(int32_t node) const { return nodes_[node].ignores_dead_controls; }
  // Returns the label of a node that a pass has added, or null.
  const PlanNodeLabel* label(int32_t node) const {
    return nodes_[node].label < 0 ? nullptr : &labels_[nodes_[node].label];
  }

  // ---- Feeds, roots and devices ----

  struct Feed {
    // "node:0".
    std::string name;
    // A reference type only in the graphs of loops.
    DataType dtype = DT_INVALID;
    // The shape that the fed placeholder declares. The rank is unknown if it declares no shape or
    // the fed node is not a placeholder.
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
    // The use, if there is only one: a node and the index of its input. Both are -1 for a root; the
    // index is -1 for a control input.
    int32_t reader = -1;
    int32_t input = -1;
    // True if no use reads an output other than the first. Control uses read no output.
    bool first_output = true;
  };
  // Returns the uses of each node.
  std::vector<Use> FindUses() const;
  // PlanOptions::devices. Feeds are on the first device.
  absl::Span<const std::string> devices() const { return devices_; }

  // ---- Changes ----

  // Adds a node that computes `origin`, with these data inputs followed by control inputs.
  int32_t AddOriginal(PlanOrigin origin, absl::Span<const Value> inputs,
                      absl::Span<const Value> control_inputs);
  // Adds a copy of a node of another graph, with other inputs.
  int32_t AddCopy(const PlanGraph& from, int32_t node, absl::Span<const Value> inputs,
                  absl::Span<const Value> control_inputs);
  // Adds a feed. Returns its value.
  Value AddFeed(Feed feed);
  // Adds a fetch. It keeps a reference to a variable if `keeps_reference`, and otherwise reads the
  // variable. REQUIRES: there are no targets
  void AddFetch(Value value, bool keeps_reference = false);
  bool keeps_reference(int fetch) const {
    return static_cast<size_t>(fetch) < keeps_reference_.size() && keeps_reference_[fetch];
  }
  // Makes this the graph of a loop: its constants are not valid in other plans.
  void SetIsLoop() { is_loop_ = true; }
  bool is_loop() const { return is_loop_; }
  // Makes the run wait for a node.
  void AddTarget(int32_t node) {
    roots_.push_back({node, kControl});
    is_pruned_ = false;
  }
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
  // Makes the node a constant without inputs, whose outputs `kernel` sets. A node that a pass has
  // added loses its label.
  void SetConstant(int32_t node, std::shared_ptr<const OpKernel> kernel);
  // Recomputes order() without the nodes that no root needs. Returns INTERNAL if there is a cycle.
  absl::Status Prune();

 private:
  friend class PlanGraphMaker;

  // Like Resolve(). Shortens the chain of replacements, so that many calls take linear time.
  Value ResolveAndShorten(Value value);
  // Returns the index of the device that the node asks for, "/job:a/device:NPU:1" or
  // "/device:NPU:1", or 0.
  uint8_t DeviceOf(const Node& node) const;

  struct PlanNode {
    const Node* origin;
    const CallSite* site = nullptr;
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
    // Index into loops_, or -1.
    int32_t loop = -1;
    bool is_original = true;
    bool stateful = false;
    bool ignores_dead_controls = false;
    uint8_t device = 0;
  };

  std::vector<PlanNode> nodes_;
  std::vector<Value> edges_;
  std::vector<int32_t> order_;
  std::vector<Feed> feeds_;
  std::vector<Value> roots_;
  int num_fetches_ = 0;
  // Empty if no fetch keeps a reference.
  std::vector<bool> keeps_reference_;
  std::vector<Value> replacements_;
  std::vector<std::shared_ptr<const OpKernel>> kernels_;
  std::vector<std::shared_ptr<LoopGraphs>> loops_;
  std::deque<PlanNodeLabel> labels_;
  std::deque<DataTypeVector> added_types_;
  std::vector<std::string> devices_ = {"/device:CPU:0"};
  bool is_pruned_ = true;
  bool is_loop_ = false;
};

struct LoopGraphs {
  PlanGraph entry;
  PlanGraph iteration;
};

// Returns the prefix of errors, "node 'name' (Op): ". Names all origins of `label` if it is not
// null.
std::string PlanNodePrefix(const PlanOrigin& origin, const PlanNodeLabel* label = nullptr);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_GRAPH_H_
