#include "gradflow/runtime/plan/layout.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/runtime/plan/deadness.h"
#include "gradflow/runtime/plan/plan_rewriter.h"
#include "gradflow/runtime/plan/prefetch.h"

namespace gradflow {

class PlanLayout {
 public:
  PlanLayout(const PassContext& context, PlanGraph graph, bool is_callee)
      : context_(context),
        is_callee_(is_callee),
        stop_(context.limits.cancelled, context.limits.closed),
        graph_(std::move(graph)),
        plan_(new Plan) {}

  absl::StatusOr<std::shared_ptr<Plan>> Make() {
    for (const PlanGraph::Feed& feed : graph_.feeds()) {
      plan_->slot_types_.push_back(TypeOfSlot(feed.dtype));
    }
    GRADFLOW_RETURN_IF_ERROR(AddNodes());
    AddSuccessors();
    AddDeadControls();
    if (!plan_->is_sequential_) {
      const auto nodes = plan_->nodes();
      plan_->SortByPaths([&](int node) { return nodes[node].cheap ? 0 : 1; }, &plan_->first_order_);
      plan_->cost_.reset(new std::atomic<int64_t>[plan_->num_nodes()]());
    }
    GRADFLOW_RETURN_IF_ERROR(AddFetches());
    plan_->feeds_.assign(graph_.feeds().begin(), graph_.feeds().end());
    plan_->devices_.assign(graph_.devices().begin(), graph_.devices().end());
    return std::move(plan_);
  }

 private:
  std::string Prefix(int32_t node) const {
    return PlanNodePrefix(graph_.origin_at_site(node), graph_.label(node));
  }

  int32_t SlotOf(PlanGraph::Value value) const {
    if (value.is_feed()) return value.output;
    return plan_->nodes_[positions_[value.node]].outputs_begin + value.output;
  }

  bool IsCall(int32_t node) const {
    return graph_.loop(node) != nullptr ||
           (graph_.kernel(node) == nullptr &&
            graph_.origin(node).op().functional() != FunctionalOp::kNone);
  }

  // The results of calls are on the first device, whatever device the calling node requests.
  uint8_t DeviceOf(int32_t node) const { return IsCall(node) ? 0 : graph_.device(node); }
  uint8_t DeviceOf(PlanGraph::Value value) const {
    return value.is_feed() ? 0 : DeviceOf(value.node);
  }

  absl::Status AddNodes() {
    const absl::Span<const int32_t> order = graph_.order();
    int64_t num_edges = 0;
    int64_t num_slots = plan_->num_slots();
    for (const int32_t node : order) {
      num_edges += graph_.num_edges(node);
      num_slots += static_cast<int64_t>(graph_.output_types(node).size());
    }
    if (std::max(num_edges, num_slots) > std::numeric_limits<int32_t>::max()) {
      return errors::ResourceExhausted("a run of ", num_edges, " edges and ", num_slots,
                                       " tensors is too large; expected at most 2147483647");
    }
    positions_.resize(graph_.num_nodes());
    plan_->nodes_.resize(order.size() + 1);
    plan_->slot_types_.reserve(num_slots);
    plan_->slot_uses_.resize(num_slots);
    plan_->inputs_.reserve(num_edges);
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t node = order[i];
      if (i + kNodesAhead < order.size()) PrefetchNode(&graph_.origin(order[i + kNodesAhead]));
      // The factory of a kernel may take long.
      GRADFLOW_RETURN_IF_ERROR(CheckPlanStop(graph_, node, context_.limits, &stop_));
      positions_[node] = static_cast<int32_t>(i);
      Plan::NodeItem& plan_node = plan_->nodes_[i];
      plan_node.node = &graph_.origin(node);
      plan_node.device = DeviceOf(node);
      if (const CallSite* const site = graph_.site(node)) {
        plan_->sites_.resize(order.size());
        plan_->sites_[i] = site;
      }
      GRADFLOW_RETURN_IF_ERROR(SetKernel(node, &plan_node));
      if (const PlanNodeLabel* label = graph_.label(node)) plan_->labels_.emplace(i, *label);
      plan_node.outputs_begin = static_cast<int32_t>(plan_->slot_types_.size());
      for (const DataType dtype : graph_.output_types(node)) {
        plan_->slot_types_.push_back(TypeOfSlot(dtype));
      }
      GRADFLOW_RETURN_IF_ERROR(AddInputs(node, &plan_node));
    }
    Plan::NodeItem& end = plan_->nodes_.back();
    end.inputs_begin = static_cast<int32_t>(plan_->inputs_.size());
    end.outputs_begin = static_cast<int32_t>(plan_->slot_types_.size());
    return absl::OkStatus();
  }

  absl::Status SetKernel(int32_t node, Plan::NodeItem* plan_node) {
    const std::shared_ptr<const OpKernel>& kernel = graph_.kernel(node);
    plan_node->stateful = graph_.stateful(node);
    if (graph_.label(node) == nullptr &&
        ControlFlowOpOf(graph_.origin(node)) == ControlFlowOp::kMerge) {
      plan_node->is_merge = true;
      plan_node->ends_later = true;
      plan_node->cheap = true;
      return absl::OkStatus();
    }
    if (IsCall(node)) {
      const FunctionalOp functional = graph_.loop(node) != nullptr
                                          ? FunctionalOp::kWhile
                                          : graph_.origin(node).op().functional();
      if (functional == FunctionalOp::kArg || functional == FunctionalOp::kRetval) {
        return errors::InvalidArgument(Prefix(node), "the op has a meaning only in functions");
      }
      plan_node->call = static_cast<int32_t>(plan_->calls_.size());
      plan_->calls_.push_back({functional, {}});
      plan_node->ends_later = true;
      return absl::OkStatus();
    }
    if (kernel != nullptr) {
      plan_node->kernel = kernel.get();
      plan_->own_kernels_.push_back(kernel);
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(plan_node->kernel,
                                context_.kernels->Get(graph_.site(node), graph_.origin(node)));
    }
    plan_node->cheap = plan_node->kernel->IsCheap();
    plan_node->async = plan_node->kernel->AsAsync() != nullptr;
    plan_node->ends_later = plan_node->async;
    plan_->has_async_ |= plan_node->async;
    return absl::OkStatus();
  }

  absl::Status AddInputs(int32_t node, Plan::NodeItem* plan_node) {
    plan_node->inputs_begin = static_cast<int32_t>(plan_->inputs_.size());
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      const int32_t slot = SlotOf(graph_.edge(node, i));
      // Nodes that passes add declare no input types.
      DataType expected = plan_->slot_types_[slot];
      if (graph_.label(node) == nullptr) {
        const Node& origin = graph_.origin(node);
        expected = origin.takes_reference(i) ? DT_RESOURCE : BaseType(origin.input_type(i));
      }
      if (plan_->slot_types_[slot] != expected) {
        return errors::Internal(Prefix(node), "input ", i, " is declared as ",
                                DataTypeString(expected), ", but its source as ",
                                DataTypeString(plan_->slot_types_[slot]));
      }
      plan_->inputs_.push_back(slot);
      ++plan_->slot_uses_[slot];
      const uint8_t device = DeviceOf(graph_.edge(node, i));
      if (device == plan_node->device) continue;
      if (plan_node->call >= 0) {
        return errors::Unimplemented(Prefix(node), "input ", i, " is on device '",
                                     graph_.devices()[device],
                                     "', but functions that run as separate plans take "
                                     "arguments only on device '",
                                     graph_.devices()[0], "'");
      }
      plan_node->has_foreign_inputs = true;
    }
    return absl::OkStatus();
  }

  void AddSuccessors() {
    const absl::Span<const int32_t> order = graph_.order();
    const size_t num_nodes = order.size();
    // The pairs of nodes (from, to) with an edge between them, without duplicates, in ascending
    // order of `to`.
    std::vector<std::pair<int32_t, int32_t>> pairs;
    pairs.reserve(plan_->inputs_.size());
    std::vector<size_t> count(num_nodes);
    std::vector<size_t> last_to(num_nodes, num_nodes);
    plan_->pending_.resize(num_nodes);
    // For each node, the maximum number of nodes worth a task on a path that ends there.
    std::vector<int32_t> depth(num_nodes);
    int32_t num_tasks = 0;
    for (size_t to = 0; to < num_nodes; ++to) {
      for (int i = 0; i < graph_.num_edges(order[to]); ++i) {
        const PlanGraph::Value source = graph_.edge(order[to], i);
        if (source.is_feed()) continue;
        const int32_t from = positions_[source.node];
        depth[to] = std::max(depth[to], depth[from]);
        if (std::exchange(last_to[from], to) == to) continue;
        pairs.emplace_back(from, static_cast<int32_t>(to));
        ++count[from];
        ++plan_->pending_[to];
      }
      if (!plan_->nodes_[to].cheap) {
        if (depth[to]++ != num_tasks++) plan_->is_sequential_ = false;
      }
      if (plan_->pending_[to] == 0) plan_->first_order_.roots.push_back(static_cast<int32_t>(to));
    }
    // From here on, `count` is the index of a node's next successor.
    size_t total = 0;
    for (size_t i = 0; i < num_nodes; ++i) {
      plan_->nodes_[i].successors_begin = static_cast<int32_t>(total);
      total += std::exchange(count[i], total);
    }
    plan_->nodes_[num_nodes].successors_begin = static_cast<int32_t>(total);
    std::vector<int32_t>& successors = plan_->first_order_.successors;
    successors.resize(total);
    for (const auto& [from, to] : pairs) successors[count[from]++] = to;
  }

  // Gives a slot to each node whose control edges carry whether it is dead.
  void AddDeadControls() {
    std::vector<DeadControl> edges = FindDeadControls(graph_);
    if (edges.empty()) return;
    const size_t num_nodes = graph_.order().size();
    plan_->dead_slots_.assign(num_nodes, -1);
    plan_->dead_controls_begin_.assign(num_nodes + 1, 0);
    for (DeadControl& edge : edges) {
      edge = {positions_[edge.from], positions_[edge.to]};
      ++plan_->dead_controls_begin_[edge.to + 1];
      int32_t& slot = plan_->dead_slots_[edge.from];
      if (slot >= 0) continue;
      slot = plan_->num_slots();
      plan_->slot_types_.push_back(DT_INVALID);
      plan_->slot_uses_.push_back(0);
    }
    std::vector<int32_t>& begin = plan_->dead_controls_begin_;
    for (size_t i = 0; i < num_nodes; ++i) begin[i + 1] += begin[i];
    plan_->dead_controls_.resize(edges.size());
    std::vector<int32_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [from, to] : edges) {
      plan_->dead_controls_[next[to]++] = plan_->dead_slots_[from];
    }
  }

  absl::Status AddFetches() {
    std::vector<bool> seen(plan_->num_slots());
    plan_->fetches_.resize(graph_.num_fetches());
    for (size_t i = plan_->fetches_.size(); i-- > 0;) {
      const PlanGraph::Value value = graph_.Resolve(graph_.roots()[i]);
      if (is_callee_ && DeviceOf(value) != 0) {
        return errors::Unimplemented(Prefix(value.node), "the result of a function is on device '",
                                     graph_.devices()[DeviceOf(value)],
                                     "', but functions that run as separate plans return "
                                     "results only on device '",
                                     graph_.devices()[0], "'");
      }
      const int32_t slot = SlotOf(value);
      plan_->fetches_[i] = {slot, !seen[slot]};
      if (!seen[slot]) ++plan_->slot_uses_[slot];
      seen[slot] = true;
    }
    return absl::OkStatus();
  }

  const PassContext& context_;
  const bool is_callee_;
  StopToken stop_;
  const PlanGraph graph_;
  std::shared_ptr<Plan> plan_;
  // The position in the plan of each node, indexed by its id in graph_.
  std::vector<int32_t> positions_;
};

absl::StatusOr<std::shared_ptr<Plan>> LayOutPlan(const PassContext& context, PlanGraph graph,
                                                 bool is_callee) {
  return PlanLayout(context, std::move(graph), is_callee).Make();
}

}  // namespace gradflow
