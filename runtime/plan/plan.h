// Plan: the work of a run, computed once for a list of feeds, fetches and targets.
//
// A plan is the graph pruned to the nodes that the fetches and targets need. Feeds replace the
// tensors that they feed, and nodes that only serve to compute a fed tensor are pruned. Passes
// (passes.h) then rewrite the plan's intermediate form (plan_graph.h), so the plan may have fewer,
// more or other nodes than the pruned graph.
//
// The result is laid out in flat arrays (layout.h). Nodes are renumbered in topological order.
// Every tensor that a run may hold has a slot. The slots of the feeds come first, followed by the
// slots of each node's outputs.
//
// Control inputs are dependencies like data inputs. A control edge from a Placeholder whose output
// is fed is pruned like a data edge, as in TensorFlow. Such a Placeholder does not run even as a
// target.
//
// Ready nodes are prioritized by critical-path length: the node with the longest path to the end
// comes first. At first, the length of a path is the number of its nodes that are worth a task.
// After kMeasuredRuns runs have measured these nodes, the length is the time that the nodes take.
//
// Thread safety: any number of runs may share a plan; only its order changes. The graph and the
// kernel cache must outlive the plan, which borrows their nodes and kernels. Nodes may be added to
// the graph during the life of the plan.
#ifndef GRADFLOW_RUNTIME_PLAN_PLAN_H_
#define GRADFLOW_RUNTIME_PLAN_PLAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan_graph.h"
#include "gradflow/runtime/plan/plan_report.h"

namespace gradflow {

// Names of tensors ("node:1", "node") and, for the targets, of nodes.
struct PlanNames {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

struct PassContext;
// A function that rewrites a plan before it is laid out (passes.h).
using PlanPass = absl::Status (*)(const PassContext& context, PlanGraph* graph);

// Optimizations of a plan. They do not change the values of a run, except fold_batch_norms
// and integer_inference. The optimized plan returns only errors that the original plan could
// return.
struct PlanOptions {
  // Runs only one of several nodes that compute the same result from the same inputs.
  bool eliminate_common_subexpressions = true;
  // The limit on the memory of the tensors that constant folding uses and keeps; 0 disables
  // constant folding.
  int64_t max_folded_bytes = 10 << 20;
  // Further passes, which run last, in this order.
  absl::Span<const PlanPass> passes = {};
  // Fuses convolutions and matrix products with the elementwise nodes that follow them.
  bool fuse = true;
  // Folds batch normalization into the constant weights of convolutions. With `fuse`, also keeps
  // images between convolutions in the blocked layout. Both change the last bits of values.
  bool fold_batch_norms = false;
  // Computes with 8-bit integers between the fake-quantization nodes of the graph.
  bool integer_inference = false;
  // With integer_inference, rounds as TensorFlow Lite does.
  bool tflite_rounding = false;
  // If not null, reads of frozen variables (Variable::Freeze) become constants.
  const ResourceManager* resources = nullptr;
  // The names of the devices that nodes may request, at most 256. Empty means "/device:CPU:0". A
  // node that requests none of these devices is on the first.
  absl::Span<const std::string> devices = {};
  // If true, a tensor that feeds a placeholder must match the placeholder's attribute `shape`.
  bool check_feed_shapes = true;
  // Filled if not null.
  PlanReport* report = nullptr;
};

class Plan {
 public:
  // One node of the plan. The ranges of its inputs, outputs and successors begin at the indexes
  // below and end where the next node's ranges begin.
  struct NodeItem {
    // Null if the executor itself runs the node: a Merge, or a node that runs the plans of calls().
    const OpKernel* kernel = nullptr;
    // The node whose result this node computes.
    const Node* node = nullptr;
    // Index into inputs().
    int32_t inputs_begin = 0;
    // The slot of its first output. A fed output also has a slot here, without readers.
    int32_t outputs_begin = 0;
    // Index into Order::successors.
    int32_t successors_begin = 0;
    // Index into calls(), or -1.
    int32_t call = -1;
    // True if the kernel costs less than a task switch (OpKernel::IsCheap).
    bool cheap = false;
    // True if the kernel is an AsyncOpKernel.
    bool async = false;
    // True if the node may end after the thread that started it has gone on: an asynchronous kernel
    // or a call. Also true for a Merge.
    bool ends_later = false;
    // True for a Merge, which the executor runs itself: it runs if any input has a value.
    bool is_merge = false;
    // True if the kernel has side effects, may wait for another kernel, or has a result that does
    // not depend only on its inputs and attributes (OpDef::is_stateful).
    bool stateful = false;
    // True if an input is on another device and so must not be written in place.
    bool has_foreign_inputs = false;
    // Index into devices().
    uint8_t device = 0;
  };

  // The priorities of nodes. The first node of a list has the highest priority. The others follow
  // in ascending priority: a thread continues with the first node and pushes the others from the
  // back of the list. The order of nodes of equal priority has no meaning.
  struct Order {
    // Nodes that wait for no other node.
    std::vector<int32_t> roots;
    // For each node, the nodes that wait for it, each once.
    std::vector<int32_t> successors;
    // For each node, nonzero if the measured cost is less than a task switch. Empty if nothing has
    // been measured.
    std::vector<uint8_t> small;
    // The largest number of bytes fed to a measuring run.
    int64_t measured_bytes = 0;
    // True if two nodes that are not small may run at once.
    bool shares = true;

    // Returns true if `small` applies to a run that is fed `fed_bytes` bytes.
    bool Holds(int64_t fed_bytes) const {
      return !small.empty() && fed_bytes <= 2 * measured_bytes;
    }
  };

  // A node that the executor itself runs, and the plans that it may run, which the plan that Make()
  // returned owns:
  //   kCall: the function
  //   kIf, kCase: the branches, in the order of the op's attributes: `then` comes before `else`
  //   kWhile: a plan that evaluates the condition before the first iteration, and a plan for one
  //     iteration, which runs the body and evaluates the condition again. Both fetch the condition
  //     and the loop variables.
  //   kFor: the body
  struct Call {
    FunctionalOp op = FunctionalOp::kNone;
    std::vector<const Plan*> plans;
  };

  // One fetched tensor.
  struct Fetch {
    int32_t slot = 0;
    // True if no later fetch returns the same tensor.
    bool last = true;
  };

  // Makes a plan. Returns NOT_FOUND if the graph lacks a node, and INVALID_ARGUMENT if the node
  // lacks the output or a tensor is fed twice. Errors of kernels and passes name their node.
  //
  // `limits` are the limits of the run that waits for the plan. Their flags end Make() early with
  // CANCELLED; their deadline does not. `kernels` then keeps the kernels made so far.
  static absl::StatusOr<std::shared_ptr<const Plan>> Make(const Graph& graph,
                                                          const PlanNames& names,
                                                          KernelCache* kernels,
                                                          const PlanOptions& options = {},
                                                          const RunLimits& limits = {});

  int num_nodes() const { return static_cast<int>(nodes_.size()) - 1; }
  int num_slots() const { return static_cast<int>(slot_types_.size()); }
  int num_feeds() const { return static_cast<int>(feeds_.size()); }
  // Returns true if any kernel is asynchronous, in this plan or in another plan that the same call
  // of Make() made.
  bool has_async() const { return has_async_; }
  // Returns true if nodes whose kernels are not cheap can only run one at a time: each waits,
  // directly or indirectly, for the previous one.
  bool is_sequential() const { return is_sequential_; }
  // Returns true if a run that is fed `fed_bytes` bytes may have work for two threads at once.
  bool may_share(int64_t fed_bytes) const {
    if (has_async_) return true;
    return SharesByItself(fed_bytes) || (!parallel_callees_.empty() && CalleesShare(fed_bytes));
  }
  // Returns the prefix of errors, "node 'name' (Op): ". Names all nodes of the graph that `node`
  // stands for.
  std::string ErrorPrefix(int node) const;
  // Returns the name of a node with the names of the nodes that call its function in front:
  // "call/loop/sum".
  std::string NodeName(int node) const;
  // Returns the call of the function that contains NodeItem::node; null if that node is in the
  // session's graph.
  const CallSite* site(int node) const { return sites_.empty() ? nullptr : sites_[node]; }
  // Returns the label of a node that a pass has added; null for other nodes.
  const PlanNodeLabel* label(int node) const;
  // The names of devices.
  absl::Span<const std::string> devices() const { return devices_; }

  // Indexed by node. A sentinel at the end marks where the ranges of the last node end.
  absl::Span<const NodeItem> nodes() const { return nodes_; }
  // Indexed by NodeItem::call.
  absl::Span<const Call> calls() const { return calls_; }
  // For each node, the number of nodes that it waits for.
  absl::Span<const int32_t> pending() const { return pending_; }
  // The slots that the nodes read.
  absl::Span<const int32_t> inputs() const { return inputs_; }
  // The order for runs that begin now. Runs in flight may keep an earlier order.
  const Order& order() const { return *order_.load(std::memory_order_acquire); }
  // For each slot, the type that its tensor must have.
  absl::Span<const DataType> slot_types() const { return slot_types_; }
  // For each slot, the number of reads by nodes, plus one if it is fetched.
  absl::Span<const int32_t> slot_uses() const { return slot_uses_; }
  // In the order of PlanNames::fetches.
  absl::Span<const Fetch> fetches() const { return fetches_; }

  // ---- Nodes in branches that are not taken ----

  // A node is dead, and does not run, if an input is dead or a node that it waits for is dead. The
  // state of a slot tells whether a tensor is dead. A node may wait for a dead node while all its
  // inputs have values. It then looks at an additional slot of the dead node, which never holds a
  // tensor. Only plans with a Switch have such slots.
  bool has_dead_controls() const { return !dead_slots_.empty(); }
  // The slots that the node looks at. REQUIRES, here and below: has_dead_controls()
  absl::Span<const int32_t> dead_controls(int node) const {
    return absl::MakeConstSpan(dead_controls_)
        .subspan(dead_controls_begin_[node],
                 dead_controls_begin_[node + 1] - dead_controls_begin_[node]);
  }
  // Returns the additional slot of the node, or -1 if it has none.
  int32_t dead_slot(int node) const { return dead_slots_[node]; }

  // Returns INVALID_ARGUMENT unless there is one initialized tensor of the right type for each
  // feed. A tensor that feeds a placeholder must also match its attribute `shape`. The error names
  // the feed.
  absl::Status CheckFeeds(absl::Span<const Tensor* const> tensors) const;

  // ---- Costs of nodes ----

  // The number of measuring runs. One is not enough, because the first run finds cold caches and an
  // empty pool.
  static constexpr int kMeasuredRuns = 2;
  // Begins a run. Returns true if the run must measure its nodes that are not cheap and call
  // EndMeasuring when it ends.
  bool BeginMeasuring() const;
  // Sets the cost of a node. A later call replaces an earlier one.
  void SetCost(int node, int64_t nanoseconds) const {
    cost_[node].store(nanoseconds, std::memory_order_relaxed);
  }
  // Ends a measuring run that was fed `fed_bytes` bytes. The last one updates the order. If a run
  // did not finish, another run measures in its place.
  void EndMeasuring(bool finished, int64_t fed_bytes = 0) const;

 private:
  friend class PlanLayout;
  friend class PlanMaker;

  Plan() = default;

  bool SharesByItself(int64_t fed_bytes) const {
    if (is_sequential_) return false;
    const Order& order = this->order();
    return order.shares || !order.Holds(fed_bytes);
  }
  bool CalleesShare(int64_t fed_bytes) const;
  // Returns true if two nodes that are not small may run at once.
  bool Shares(const Order& order) const;
  // Sorts the roots and the successors of an order by critical-path length. The length of a path is
  // the sum of length(node) over its nodes.
  void SortByPaths(absl::FunctionRef<int64_t(int)> length, Order* order) const;

  std::vector<NodeItem> nodes_;
  std::vector<int32_t> pending_;
  std::vector<int32_t> inputs_;
  std::vector<DataType> slot_types_;
  std::vector<int32_t> slot_uses_;
  // Empty without dead controls.
  std::vector<int32_t> dead_slots_;
  std::vector<int32_t> dead_controls_begin_;
  std::vector<int32_t> dead_controls_;
  std::vector<PlanGraph::Feed> feeds_;
  std::vector<Fetch> fetches_;
  std::vector<Call> calls_;
  // Indexed by node; empty if all nodes are in the session's graph.
  std::vector<const CallSite*> sites_;
  // All plans that nodes run, directly or not. Empty except in the plan that Make() returned.
  std::vector<std::shared_ptr<const Plan>> callees_;
  // The plans in callees_ that are not sequential.
  std::vector<const Plan*> parallel_callees_;
  bool has_async_ = false;
  bool is_sequential_ = true;
  Order first_order_;
  mutable Order measured_order_;
  mutable std::atomic<const Order*> order_{&first_order_};
  // Indexed by node, in nanoseconds; null if the plan is not measured.
  std::unique_ptr<std::atomic<int64_t>[]> cost_;
  // The numbers of measuring runs that have not begun, and that have not ended.
  mutable std::atomic<int> to_begin_{kMeasuredRuns};
  mutable std::atomic<int> to_end_{kMeasuredRuns};
  mutable std::atomic<int64_t> measured_bytes_{0};
  // Kernels that passes have made, or that the cache may drop before the plan does.
  std::vector<std::shared_ptr<const OpKernel>> own_kernels_;
  // Keyed by node. Holds only nodes that passes have added.
  internal::HashMap<int32_t, PlanNodeLabel> labels_;
  std::vector<std::string> devices_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_H_
