// Plan: what a run does, worked out once for a list of feeds, fetches and targets.
//
// It is the graph pruned to what the fetches and targets need, with the feeds cut in: who needs a
// fed tensor gets the fed value, and what only served to compute it is left out. Nodes are numbered
// anew, each after all that it needs. Every tensor that a run may hold is a slot: first the feeds
// in their order, then the outputs of the nodes one after the other. All is laid out in flat
// arrays. On the way it is made smaller (optimize.h): identical nodes run once, and nodes of
// constants not at all, so that there may be fewer nodes than the graph has for this.
//
// Control inputs count as needs. A control edge from a Placeholder whose output is fed is cut like
// a data edge (as in TensorFlow), and such a Placeholder is no target to run: it has its value.
//
// Of nodes that could be begun, that one is best begun from which the longest path leads to the
// end. At first, paths are as long as they have nodes that are worth a task; once a few runs have
// measured these, as long as they take.
//
// Thread safety: any number of runs may share one, of which only the order changes. It borrows the
// graph's nodes and the kernels of the cache, and both must outlive it; nodes may be added to the
// graph meanwhile.
#ifndef GRADFLOW_RUNTIME_PLAN_H_
#define GRADFLOW_RUNTIME_PLAN_H_

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
#include "gradflow/runtime/kernel_cache.h"
#include "gradflow/runtime/run_limits.h"

namespace gradflow {

// Names of tensors ("node:1", "node") and, for the targets, of nodes.
struct PlanNames {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

// How a plan is optimised. Whatever is said here, a run gives the same values, and its errors are
// among those that it could end with otherwise.
struct PlanOptions {
  // Whether of nodes that compute the same from the same inputs only one runs.
  bool merge_identical_nodes = true;
  // Nodes of constants run once, when the plan is made, for as long as the tensors that this takes
  // and leaves need no more memory than that; with 0, none does.
  int64_t max_folded_bytes = 10 << 20;
};

class Plan {
 public:
  // One node of the plan. Its inputs, outputs and successors begin here, and end where those of the
  // next one begin.
  struct PlanNode {
    const OpKernel* kernel = nullptr;
    const Node* node = nullptr;
    // Into inputs().
    int32_t inputs_begin = 0;
    // Its first output's slot. An output that is fed has a slot here, too, which no one reads.
    int32_t outputs_begin = 0;
    // Into Order::successors.
    int32_t successors_begin = 0;
    // Of the kernel: whether it may run on any thread at once.
    bool cheap = false;
  };

  // Which nodes are best begun. The first of a list is the best, and the last the second best;
  // ascending if it does not matter.
  struct Order {
    // Nodes that wait for none.
    std::vector<int32_t> roots;
    // Nodes that wait for a node, each once.
    std::vector<int32_t> successors;
  };

  // What a fetch gives.
  struct Fetch {
    int32_t slot = 0;
    // Whether no later fetch gives the same tensor.
    bool last = true;
  };

  // NOT_FOUND or INVALID_ARGUMENT for a name that the graph does not have or a tensor that is fed
  // twice; otherwise what the kernels say that cannot be made, with the name of the node. Ends
  // early, between nodes, by the flags of `limits`, those of the run that waits for it; `kernels`
  // has what was found out until then.
  static absl::StatusOr<std::unique_ptr<const Plan>> Make(const Graph& graph,
                                                          const PlanNames& names,
                                                          KernelCache* kernels,
                                                          const PlanOptions& options = {},
                                                          const RunLimits& limits = {});

  int num_nodes() const { return static_cast<int>(nodes_.size()) - 1; }
  int num_slots() const { return static_cast<int>(slot_types_.size()); }
  int num_feeds() const { return static_cast<int>(feeds_.size()); }
  // Whether there are never two nodes at once that are worth a task: each of these waits, in the
  // end, for the one before.
  bool is_sequential() const { return is_sequential_; }

  // By node, and one more that only ends the last.
  absl::Span<const PlanNode> nodes() const { return nodes_; }
  // For each node, how many others must be done before it.
  absl::Span<const int32_t> pending() const { return pending_; }
  // Slots that the nodes read.
  absl::Span<const int32_t> inputs() const { return inputs_; }
  // The order for runs that begin now; runs that have begun may keep to theirs.
  const Order& order() const { return *order_.load(std::memory_order_acquire); }
  // For each slot, the type that its tensor must have.
  absl::Span<const DataType> slot_types() const { return slot_types_; }
  // For each slot, how often it is read by the nodes, and once more if it is fetched.
  absl::Span<const int32_t> slot_uses() const { return slot_uses_; }
  // In the order of the names.
  absl::Span<const Fetch> fetches() const { return fetches_; }

  // INVALID_ARGUMENT, with the name of the feed, unless there is one tensor for each, of the right
  // type and, where it stands for a Placeholder, of a shape that fits the attribute `shape`.
  absl::Status CheckFeeds(absl::Span<const Tensor* const> tensors) const;

  // ---- What nodes cost ----

  // How many runs measure: the first finds cold caches and no memory in the pool.
  static constexpr int kMeasuredRuns = 2;
  // Whether the run that begins is to measure its nodes that are not cheap. It then calls
  // EndMeasuring at its end.
  bool BeginMeasuring() const;
  // The last to say so of a node counts.
  void SetCost(int node, int64_t nanoseconds) const {
    cost_[node].store(nanoseconds, std::memory_order_relaxed);
  }
  // After the last of the runs that measured, changes the order. A run that did not get to its end
  // leaves it to another one to measure.
  void EndMeasuring(bool finished) const;

 private:
  friend class PlanBuilder;

  struct Feed {
    // "node:0".
    std::string name;
    // What the Placeholder says; of unknown rank if it says nothing or is none.
    PartialTensorShape shape;
  };

  Plan() = default;

  // Sorts both lists of an order. `length` is that of a node; a path has the sum of its nodes.
  void SortByPaths(absl::FunctionRef<int64_t(int)> length, Order* order) const;

  std::vector<PlanNode> nodes_;
  std::vector<int32_t> pending_;
  std::vector<int32_t> inputs_;
  std::vector<DataType> slot_types_;
  std::vector<int32_t> slot_uses_;
  std::vector<Feed> feeds_;
  std::vector<Fetch> fetches_;
  bool is_sequential_ = true;
  Order first_order_;
  mutable Order measured_order_;
  mutable std::atomic<const Order*> order_{&first_order_};
  // By node, in nanoseconds; null if no order is better than another.
  std::unique_ptr<std::atomic<int64_t>[]> cost_;
  // Runs that are to measure: how many are still to begin, and how many to end.
  mutable std::atomic<int> to_begin_{kMeasuredRuns};
  mutable std::atomic<int> to_end_{kMeasuredRuns};
  // Kernels that the cache may drop before the plan does.
  std::vector<std::shared_ptr<const OpKernel>> constants_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_H_
