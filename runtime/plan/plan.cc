#include "gradflow/runtime/plan/plan.h"

#include <algorithm>
#include <utility>

#include "gradflow/core/status.h"
#include "gradflow/runtime/plan/layout.h"
#include "gradflow/runtime/plan/make_plan_graph.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {

absl::StatusOr<std::shared_ptr<const Plan>> Plan::Make(const Graph& graph, const PlanNames& names,
                                                       KernelCache* kernels,
                                                       const PlanOptions& options,
                                                       const RunLimits& limits) {
  const PassContext context = {options, limits, kernels};
  GRADFLOW_ASSIGN_OR_RETURN(PlanGraph plan, MakePlanGraph(graph, names, context));
  if (options.report != nullptr)
    options.report->needed_nodes = static_cast<int>(plan.order().size());
  for (const PlanPass pass : {ResolveReferences, EliminateCommonSubexpressions, FoldConstants}) {
    GRADFLOW_RETURN_IF_ERROR(pass(context, &plan));
  }
  if (options.report != nullptr) ReportMergedAndFolded(plan, options.report);
  for (const PlanPass pass : {FoldBatchNorms, FuseSteps, BlockChannels}) {
    GRADFLOW_RETURN_IF_ERROR(pass(context, &plan));
  }
  for (const PlanPass pass : options.passes) GRADFLOW_RETURN_IF_ERROR(pass(context, &plan));
  GRADFLOW_RETURN_IF_ERROR(plan.Prune());
  if (options.report != nullptr) ReportFused(plan, options.report);
  return LayOutPlan(context, std::move(plan));
}

absl::Status Plan::CheckFeeds(absl::Span<const Tensor* const> tensors) const {
  if (tensors.size() != feeds_.size()) {
    return errors::InvalidArgument("expected ", feeds_.size(), " fed tensors, found ",
                                   tensors.size());
  }
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const Tensor& tensor = *tensors[i];
    const PlanGraph::Feed& feed = feeds_[i];
    if (tensor.dtype() != slot_types_[i]) {
      return errors::InvalidArgument("feed '", feed.name, "': expected type ",
                                     DataTypeString(slot_types_[i]), ", found ",
                                     DataTypeString(tensor.dtype()));
    }
    if (!tensor.IsInitialized()) {
      return errors::InvalidArgument("feed '", feed.name, "': the tensor is not initialized");
    }
    if (!feed.shape.unknown_rank() && !feed.shape.IsCompatibleWith(tensor.shape())) {
      return errors::InvalidArgument("feed '", feed.name, "': expected shape ",
                                     feed.shape.DebugString(), ", found ",
                                     tensor.shape().DebugString());
    }
  }
  return absl::OkStatus();
}

void Plan::SortByPaths(absl::FunctionRef<int64_t(int)> length, Order* order) const {
  // For each node, the length of the longest path that begins there.
  std::vector<int64_t> path(num_nodes());
  // A thread continues with the first node. It spawns the others from the back, and other threads
  // take them in that order.
  const auto sort = [&](int32_t* begin, int32_t* end) {
    if (std::adjacent_find(begin, end, [&](int32_t a, int32_t b) { return path[a] != path[b]; }) ==
        end) {
      return;
    }
    std::stable_sort(begin, end, [&](int32_t a, int32_t b) { return path[a] > path[b]; });
    std::reverse(begin + 1, end);
  };
  for (int32_t i = num_nodes(); i-- > 0;) {
    int32_t* const begin = order->successors.data() + nodes_[i].successors_begin;
    int32_t* const end = order->successors.data() + nodes_[i + 1].successors_begin;
    for (const int32_t* next = begin; next != end; ++next) path[i] = std::max(path[i], path[*next]);
    path[i] += length(i);
    sort(begin, end);
  }
  sort(order->roots.data(), order->roots.data() + order->roots.size());
}

bool Plan::BeginMeasuring() const {
  if (cost_ == nullptr) return false;
  int left = to_begin_.load(std::memory_order_relaxed);
  while (left > 0 && !to_begin_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  return left > 0;
}

bool Plan::Shares(const Order& order) const {
  // The maximum number of nodes that are not small on a path that ends at a node.
  std::vector<int32_t> depth(num_nodes());
  int32_t count = 0;
  for (int32_t i = 0; i < num_nodes(); ++i) {
    if (order.small[i] == 0 && depth[i]++ != count++) return true;
    for (int32_t s = nodes_[i].successors_begin; s < nodes_[i + 1].successors_begin; ++s) {
      int32_t& next = depth[order.successors[s]];
      next = std::max(next, depth[i]);
    }
  }
  return false;
}

std::string Plan::ErrorPrefix(int node) const {
  return PlanNodePrefix(*nodes_[node].node, label(node));
}

const PlanNodeLabel* Plan::label(int node) const {
  if (labels_.empty()) return nullptr;
  const auto it = labels_.find(node);
  return it == labels_.end() ? nullptr : &it->second;
}

void Plan::EndMeasuring(bool finished, int64_t fed_bytes) const {
  if (!finished) {
    to_begin_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  int64_t most = measured_bytes_.load(std::memory_order_relaxed);
  while (most < fed_bytes && !measured_bytes_.compare_exchange_weak(most, fed_bytes)) {
  }
  // The run that ends last sees the measurements of all.
  if (to_end_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // At most this long, a node is small: handing it to another thread, which may have to be woken,
  // would take a few microseconds.
  constexpr int64_t kSmallNanoseconds = 1000;
  measured_order_ = first_order_;
  measured_order_.measured_bytes = measured_bytes_.load(std::memory_order_relaxed);
  measured_order_.small.resize(num_nodes());
  for (int i = 0; i < num_nodes(); ++i) {
    // A stateful kernel may wait for another, so its time says little about its cost.
    const bool may_wait = nodes_[i].async || nodes_[i].stateful;
    measured_order_.small[i] =
        nodes_[i].cheap ||
        (!may_wait && cost_[i].load(std::memory_order_relaxed) <= kSmallNanoseconds);
  }
  measured_order_.shares = Shares(measured_order_);
  SortByPaths(
      [&](int node) {
        return nodes_[node].cheap ? 0 : cost_[node].load(std::memory_order_relaxed);
      },
      &measured_order_);
  order_.store(&measured_order_, std::memory_order_release);
}

}  // namespace gradflow
