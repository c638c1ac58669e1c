#include "gradflow/runtime/plan/plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "gradflow/core/status.h"
#include "gradflow/runtime/plan/expand_calls.h"
#include "gradflow/runtime/plan/layout.h"
#include "gradflow/runtime/plan/make_plan_graph.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {

// Makes a plan and the plans that its nodes run.
class PlanMaker {
 public:
  explicit PlanMaker(const PassContext& context) : context_(context) {}

  absl::StatusOr<std::shared_ptr<const Plan>> Make(PlanGraph graph) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<Plan> plan,
                              Finish(std::move(graph), /*is_callee=*/false));
    if (todo_.empty()) return plan;
    // Uses no recursion, because functions may be nested to any depth.
    while (!todo_.empty()) {
      const Todo todo = std::move(todo_.back());
      todo_.pop_back();
      for (const Callee& callee : todo.callees) {
        GRADFLOW_ASSIGN_OR_RETURN(const Plan* const made, FindOrMake(callee));
        todo.caller->calls_[todo.call].plans.push_back(made);
      }
      if (todo.loop != nullptr) {
        GRADFLOW_ASSIGN_OR_RETURN(todo.caller->calls_[todo.call].plans, FindOrMake(todo.loop));
      }
    }
    for (const std::shared_ptr<Plan>& callee : callees_) plan->has_async_ |= callee->has_async_;
    for (const std::shared_ptr<Plan>& callee : callees_) {
      callee->has_async_ = plan->has_async_;
      if (!callee->is_sequential_) plan->parallel_callees_.push_back(callee.get());
    }
    plan->callees_.assign(callees_.begin(), callees_.end());
    return plan;
  }

 private:
  // A node that runs plans.
  struct Todo {
    Plan* caller;
    int32_t call;
    std::vector<Callee> callees;
    // Null for the node of a function.
    std::shared_ptr<LoopGraphs> loop;
  };
  using Key = std::tuple<CalleeRole, const FunctionBody*, const FunctionBody*>;

  absl::StatusOr<std::shared_ptr<Plan>> Finish(PlanGraph graph, bool is_callee) {
    PlanReport* const report = context_.options.report;
    GRADFLOW_RETURN_IF_ERROR(ExpandCalls(context_, &graph));
    if (report != nullptr) report->needed_nodes += static_cast<int>(graph.order().size());
    for (const PlanPass pass : {ResolveReferences, FreezeVariables, EliminateCommonSubexpressions,
                                FoldConstants, UseIntegers, FoldQuantizedConstants}) {
      GRADFLOW_RETURN_IF_ERROR(pass(context_, &graph));
    }
    if (report != nullptr) ReportMergedAndFolded(graph, report);
    for (const PlanPass pass : {FoldBatchNorms, FuseSteps, ChooseBlockedLayouts}) {
      GRADFLOW_RETURN_IF_ERROR(pass(context_, &graph));
    }
    for (const PlanPass pass : context_.options.passes) {
      GRADFLOW_RETURN_IF_ERROR(pass(context_, &graph));
    }
    GRADFLOW_RETURN_IF_ERROR(graph.Prune());
    if (report != nullptr) ReportFused(graph, report);
    // The layout keeps the order of the nodes.
    std::vector<std::shared_ptr<LoopGraphs>> loops;
    for (const int32_t node : graph.order()) {
      if (graph.loop(node) != nullptr) loops.push_back(graph.loop(node));
    }
    size_t next_loop = 0;
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan,
                              LayOutPlan(context_, std::move(graph), is_callee));
    for (int node = 0; node < plan->num_nodes() && !plan->calls().empty(); ++node) {
      const Plan::NodeItem& item = plan->nodes()[node];
      if (item.call < 0) continue;
      Todo todo = {plan.get(), item.call, {}, nullptr};
      if (plan->label(node) != nullptr) {
        todo.loop = std::move(loops[next_loop++]);
      } else {
        GRADFLOW_ASSIGN_OR_RETURN(todo.callees, CalleesOf({item.node, plan->site(node)}));
      }
      todo_.push_back(std::move(todo));
    }
    return plan;
  }

  // Makes the plans of a loop. The copies of a loop, in the plans for the first and for the other
  // iterations of an outer loop, share their plans.
  absl::StatusOr<std::vector<const Plan*>> FindOrMake(const std::shared_ptr<LoopGraphs>& loop) {
    const auto [it, is_new] = loops_.try_emplace(loop.get());
    if (is_new) {
      kept_loops_.push_back(loop);
      std::vector<const Plan*> plans;
      for (PlanGraph* graph : {&loop->entry, &loop->iteration}) {
        GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan,
                                  Finish(std::move(*graph), /*is_callee=*/true));
        callees_.push_back(std::move(plan));
        plans.push_back(callees_.back().get());
      }
      GRADFLOW_RETURN_IF_ERROR(CheckState(*plans[0], *plans[1]));
      loops_[loop.get()] = std::move(plans);
    }
    return loops_[loop.get()];
  }

  absl::StatusOr<const Plan*> FindOrMake(const Callee& callee) {
    // Each call has its own plans, because kernels may hold state. Only recursive calls share a
    // plan.
    const bool recurs = Recurs(callee);
    const Key key = {callee.role, callee.body, callee.loop_body};
    if (recurs) {
      const auto found = recursive_.find(key);
      if (found != recursive_.end()) return found->second;
    }
    GRADFLOW_ASSIGN_OR_RETURN(PlanGraph graph, MakeCalleeGraph(context_, callee));
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan,
                              Finish(std::move(graph), /*is_callee=*/true));
    callees_.push_back(std::move(plan));
    if (recurs) recursive_.emplace(key, callees_.back().get());
    return callees_.back().get();
  }

  // Returns INTERNAL unless both plans of a loop return the condition and the feeds of the second
  // plan.
  static absl::Status CheckState(const Plan& entry, const Plan& iteration) {
    const auto feeds = static_cast<size_t>(iteration.num_feeds());
    for (const Plan* plan : {&entry, &iteration}) {
      bool same = plan->fetches().size() == feeds + 1;
      for (size_t i = 0; same && i < feeds; ++i) {
        same = plan->slot_types()[plan->fetches()[i + 1].slot] == iteration.slot_types()[i];
      }
      if (!same) return errors::Internal("the plans of a loop have different states");
    }
    return absl::OkStatus();
  }

  const PassContext& context_;
  std::vector<std::shared_ptr<Plan>> callees_;
  std::map<Key, const Plan*> recursive_;
  std::map<const LoopGraphs*, std::vector<const Plan*>> loops_;
  std::vector<std::shared_ptr<LoopGraphs>> kept_loops_;
  std::vector<Todo> todo_;
};

absl::StatusOr<std::shared_ptr<const Plan>> Plan::Make(const Graph& graph, const PlanNames& names,
                                                       KernelCache* kernels,
                                                       const PlanOptions& options,
                                                       const RunLimits& limits) {
  PlanBudget budget;
  budget.folded_bytes = options.max_folded_bytes;
  const PassContext context = {options, limits, kernels, &budget};
  GRADFLOW_ASSIGN_OR_RETURN(PlanGraph plan, MakePlanGraph(graph, names, context));
  return PlanMaker(context).Make(std::move(plan));
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
  // For each node, the maximum number of nodes that are not small on a path that ends there.
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
  return PlanNodePrefix({nodes_[node].node, site(node)}, label(node));
}

std::string Plan::NodeName(int node) const {
  const PlanNodeLabel* const found = label(node);
  return found != nullptr ? found->name : PlanOrigin(nodes_[node].node, site(node)).name();
}

bool Plan::CalleesShare(int64_t fed_bytes) const {
  return std::any_of(parallel_callees_.begin(), parallel_callees_.end(),
                     [&](const Plan* plan) { return plan->SharesByItself(fed_bytes); });
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
  // A node is small if it takes at most this long: handing it to another thread, which may have to
  // be woken, takes longer.
  constexpr int64_t kSmallNanoseconds = 1000;
  measured_order_ = first_order_;
  measured_order_.measured_bytes = measured_bytes_.load(std::memory_order_relaxed);
  measured_order_.small.resize(num_nodes());
  for (int i = 0; i < num_nodes(); ++i) {
    // A stateful kernel may wait for another, so its time says little about its cost.
    const bool may_wait = nodes_[i].async || nodes_[i].stateful || nodes_[i].call >= 0;
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
