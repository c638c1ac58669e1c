// Plan: the work of a run, computed once for a list of feeds, fetches and targets.
//
// A plan is the graph pruned to the nodes that the fetches and targets need. Feeds replace the
// tensors that they feed, and nodes that only serve to compute a fed tensor are pruned. Passes
// (passes.h) then rewrite the plan's intermediate form (plan_graph.h), so the plan may have fewer,
// more or other nodes than the pruned graph.
//
// The result is laid out in flat arrays (layout.h). Nodes are renumbered in topological order.
// Every tensor that a run may hold has a slot: first the feeds in their order, then the outputs of
// the nodes in theirs.
//
// Control inputs are dependencies, too. A control edge from a Placeholder whose output is fed is
// pruned like a data edge, as in TensorFlow. Such a Placeholder does not run even as a target.
//
// Ready nodes are prioritized by critical-path length: the node with the longest path to the end
// comes first. At first, the length of a path is the number of its nodes that are worth a task.
// Once kMeasuredRuns runs have measured these nodes, it is the time that they take.
//
// Thread safety: any number of runs may share a plan. Only its order changes. The graph and the
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

// Optimizations of a plan. They do not change the values of a run, but for fold_batch_norms. The
// optimized plan returns only errors that the original plan could return.
struct PlanOptions {
  // Runs one node in place of several that compute the same from the same inputs.
  bool eliminate_common_subexpressions = true;
  // The limit on the memory of the tensors that constant folding uses and keeps; 0 disables
  // constant folding.
  int64_t max_folded_bytes = 10 << 20;
  // Further passes, which run last, in this order.
  absl::Span<const PlanPass> passes = {};
  // Fuses convolutions and matrix products with the elementwise nodes that follow them.
  bool fuse = true;
  // Folds batch normalization into the constant weights of convolutions, and, with `fuse`, keeps
  // images between them in blocks of channels, which changes the last bits of values.
  bool fold_batch_norms = false;
  // The names of the devices that nodes may ask for, at most 256; if empty, "/device:CPU:0". A node
  // that asks for none of them is on the first.
  absl::Span<const std::string> devices = {};
  // Filled if not null.
  PlanReport* report = nullptr;
};

class Plan {
 public:
  // One node of the plan. Its inputs, outputs and successors begin at the indexes below, and end
  // where those of the next node begin.
  struct PlanNode {
    const OpKernel* kernel = nullptr;
    // The node of the graph whose result it computes.
    const Node* node = nullptr;
    // Index into inputs().
    int32_t inputs_begin = 0;
    // The slot of its first output. A fed output also has a slot here, without readers.
    int32_t outputs_begin = 0;
    // Index into Order::successors.
    int32_t successors_begin = 0;
    // True if the kernel costs less than a task switch (OpKernel::IsCheap).
    bool cheap = false;
    // True if the kernel is an AsyncOpKernel.
    bool async = false;
    // True if the kernel has side effects or may wait for another kernel.
    bool stateful = false;
    // True if an input is of another device, and so must not be written in place.
    bool has_foreign_inputs = false;
    // Index into devices().
    uint8_t device = 0;
  };

  // The priorities of nodes. The first node of a list has the highest priority. The others follow
  // in ascending priority: a thread continues with the first node and pushes the others, last one
  // first. Nodes of equal priority are in ascending order.
  struct Order {
    // Nodes that wait for no other node.
    std::vector<int32_t> roots;
    // For each node, the nodes that wait for it, each once.
    std::vector<int32_t> successors;
    // By node: nonzero if the measured cost is less than that of a task switch. Empty if nothing
    // has been measured.
    std::vector<uint8_t> small;
    // The largest number of bytes that were fed to a run that measured the costs.
    int64_t measured_bytes = 0;
    // True if two nodes that are not small may run at once.
    bool shares = true;

    // Returns true if `small` applies to a run that is fed `fed_bytes` bytes.
    bool Holds(int64_t fed_bytes) const {
      return !small.empty() && fed_bytes <= 2 * measured_bytes;
    }
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
  // `limits` are those of the run that waits for the plan. Their flags, but not their deadline, end
  // Make() early, with CANCELLED. `kernels` keeps the kernels that were made until then.
  static absl::StatusOr<std::shared_ptr<const Plan>> Make(const Graph& graph,
                                                          const PlanNames& names,
                                                          KernelCache* kernels,
                                                          const PlanOptions& options = {},
                                                          const RunLimits& limits = {});

  int num_nodes() const { return static_cast<int>(nodes_.size()) - 1; }
  int num_slots() const { return static_cast<int>(slot_types_.size()); }
  int num_feeds() const { return static_cast<int>(feeds_.size()); }
  // Returns true if any kernel is asynchronous.
  bool has_async() const { return has_async_; }
  // Returns true if no two nodes whose kernels are not cheap can run at once: each waits, directly
  // or not, for the one before.
  bool is_sequential() const { return is_sequential_; }
  // Returns true if a run that is fed `fed_bytes` bytes may have work for two threads at once.
  bool may_share(int64_t fed_bytes) const {
    if (has_async_ || is_sequential_) return has_async_;
    const Order& order = this->order();
    return order.shares || !order.Holds(fed_bytes);
  }
  // Returns "node 'name' (Op): ", for errors. Names all nodes of the graph that `node` stands for.
  std::string ErrorPrefix(int node) const;
  // Returns the name of a node that a pass has added, or null.
  const PlanNodeLabel* label(int node) const;
  // The names of devices.
  absl::Span<const std::string> devices() const { return devices_; }

  // By node, followed by a sentinel that only ends the last node.
  absl::Span<const PlanNode> nodes() const { return nodes_; }
  // For each node, the number of nodes that it waits for.
  absl::Span<const int32_t> pending() const { return pending_; }
  // The slots that the nodes read.
  absl::Span<const int32_t> inputs() const { return inputs_; }
  // The order for runs that begin now. Runs in flight may keep theirs.
  const Order& order() const { return *order_.load(std::memory_order_acquire); }
  // For each slot, the type that its tensor must have.
  absl::Span<const DataType> slot_types() const { return slot_types_; }
  // For each slot, the number of reads by nodes, plus one if it is fetched.
  absl::Span<const int32_t> slot_uses() const { return slot_uses_; }
  // In the order of PlanNames::fetches.
  absl::Span<const Fetch> fetches() const { return fetches_; }

  // Returns INVALID_ARGUMENT unless there is one initialized tensor of the right type for each
  // feed. A tensor that feeds a placeholder must also match its attribute `shape`. The text names
  // the feed.
  absl::Status CheckFeeds(absl::Span<const Tensor* const> tensors) const;

  // ---- Costs of nodes ----

  // The number of runs that measure. One is not enough: the first finds cold caches and an empty
  // pool.
  static constexpr int kMeasuredRuns = 2;
  // Begins a run. Returns true if the run must measure its nodes that are not cheap, and call
  // EndMeasuring at its end.
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

  Plan() = default;

  // Returns true if two nodes that are not small may run at once.
  bool Shares(const Order& order) const;
  // Sorts the roots and the successors of an order by critical-path length. The length of a path is
  // the sum of length(node) over its nodes.
  void SortByPaths(absl::FunctionRef<int64_t(int)> length, Order* order) const;

  std::vector<PlanNode> nodes_;
  std::vector<int32_t> pending_;
  std::vector<int32_t> inputs_;
  std::vector<DataType> slot_types_;
  std::vector<int32_t> slot_uses_;
  std::vector<PlanGraph::Feed> feeds_;
  std::vector<Fetch> fetches_;
  bool has_async_ = false;
  bool is_sequential_ = true;
  Order first_order_;
  mutable Order measured_order_;
  mutable std::atomic<const Order*> order_{&first_order_};
  // By node, in nanoseconds; null if the plan is not measured.
  std::unique_ptr<std::atomic<int64_t>[]> cost_;
  // The numbers of measuring runs that have yet to begin, and yet to end.
  mutable std::atomic<int> to_begin_{kMeasuredRuns};
  mutable std::atomic<int> to_end_{kMeasuredRuns};
  mutable std::atomic<int64_t> measured_bytes_{0};
  // Kernels that passes have made, or that the cache may drop before the plan does.
  std::vector<std::shared_ptr<const OpKernel>> own_kernels_;
  // By node; only for nodes that passes have added.
  internal::HashMap<int32_t, PlanNodeLabel> labels_;
  std::vector<std::string> devices_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_H_
