#include "gradflow/runtime/plan/layout.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/runtime/plan/plan_rewriter.h"
#include "gradflow/runtime/plan/prefetch.h"

namespace gradflow {

class PlanLayout {
 public:
  PlanLayout(const PassContext& context, PlanGraph graph)
      : context_(context),
        stop_(context.limits.cancelled, context.limits.closed),
        graph_(std::move(graph)),
        plan_(new Plan) {}

  absl::StatusOr<std::shared_ptr<const Plan>> Make() {
    for (const PlanGraph::Feed& feed : graph_.feeds()) plan_->slot_types_.push_back(feed.dtype);
    GRADFLOW_RETURN_IF_ERROR(AddNodes());
    AddSuccessors();
    if (!plan_->is_sequential_) {
      const auto nodes = plan_->nodes();
      plan_->SortByPaths([&](int node) { return nodes[node].cheap ? 0 : 1; }, &plan_->first_order_);
      plan_->cost_.reset(new std::atomic<int64_t>[plan_->num_nodes()]());
    }
    AddFetches();
    plan_->feeds_.assign(graph_.feeds().begin(), graph_.feeds().end());
    plan_->devices_.assign(graph_.devices().begin(), graph_.devices().end());
    return std::move(plan_);
  }

 private:
  std::string Prefix(int32_t node) const {
    return PlanNodePrefix(graph_.origin(node), graph_.label(node));
  }

  int32_t SlotOf(PlanGraph::Value value) const {
    if (value.is_feed()) return value.output;
    return plan_->nodes_[positions_[value.node]].outputs_begin + value.output;
  }

  uint8_t DeviceOf(PlanGraph::Value value) const {
    return value.is_feed() ? 0 : graph_.device(value.node);
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
      Plan::PlanNode& plan_node = plan_->nodes_[i];
      plan_node.node = &graph_.origin(node);
      plan_node.device = graph_.device(node);
      GRADFLOW_RETURN_IF_ERROR(SetKernel(node, &plan_node));
      if (const PlanNodeLabel* label = graph_.label(node)) plan_->labels_.emplace(i, *label);
      plan_node.outputs_begin = static_cast<int32_t>(plan_->slot_types_.size());
      for (const DataType dtype : graph_.output_types(node)) {
        plan_->slot_types_.push_back(TypeOfSlot(dtype));
      }
      GRADFLOW_RETURN_IF_ERROR(AddInputs(node, &plan_node));
    }
    Plan::PlanNode& end = plan_->nodes_.back();
    end.inputs_begin = static_cast<int32_t>(plan_->inputs_.size());
    end.outputs_begin = static_cast<int32_t>(plan_->slot_types_.size());
    return absl::OkStatus();
  }

  absl::Status SetKernel(int32_t node, Plan::PlanNode* plan_node) {
    const std::shared_ptr<const OpKernel>& kernel = graph_.kernel(node);
    if (kernel != nullptr) {
      plan_node->kernel = kernel.get();
      plan_->own_kernels_.push_back(kernel);
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(plan_node->kernel, context_.kernels->Get(graph_.origin(node)));
    }
    plan_node->cheap = plan_node->kernel->IsCheap();
    plan_node->async = plan_node->kernel->AsAsync() != nullptr;
    plan_node->stateful = graph_.stateful(node);
    plan_->has_async_ |= plan_node->async;
    return absl::OkStatus();
  }

  absl::Status AddInputs(int32_t node, Plan::PlanNode* plan_node) {
    plan_node->inputs_begin = static_cast<int32_t>(plan_->inputs_.size());
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      const int32_t slot = SlotOf(graph_.edge(node, i));
      // The nodes that passes add declare no types of inputs.
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
      plan_node->has_foreign_inputs |= DeviceOf(graph_.edge(node, i)) != plan_node->device;
    }
    return absl::OkStatus();
  }

  void AddSuccessors() {
    const absl::Span<const int32_t> order = graph_.order();
    const size_t num_nodes = order.size();
    // The pairs of nodes (from, to) with an edge between them, each once, by ascending `to`.
    std::vector<std::pair<int32_t, int32_t>> pairs;
    pairs.reserve(plan_->inputs_.size());
    std::vector<size_t> count(num_nodes);
    std::vector<size_t> last_to(num_nodes, num_nodes);
    plan_->pending_.resize(num_nodes);
    // The maximum number of nodes worth a task on a path that ends at a node.
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

  void AddFetches() {
    std::vector<bool> seen(plan_->num_slots());
    plan_->fetches_.resize(graph_.num_fetches());
    for (size_t i = plan_->fetches_.size(); i-- > 0;) {
      const int32_t slot = SlotOf(graph_.Resolve(graph_.roots()[i]));
      plan_->fetches_[i] = {slot, !seen[slot]};
      if (!seen[slot]) ++plan_->slot_uses_[slot];
      seen[slot] = true;
    }
  }

  const PassContext& context_;
  RunStop stop_;
  const PlanGraph graph_;
  std::unique_ptr<Plan> plan_;
  // By the id of a node in graph_: its position in the plan.
  std::vector<int32_t> positions_;
};

absl::StatusOr<std::shared_ptr<const Plan>> LayOutPlan(const PassContext& context,
                                                       PlanGraph graph) {
  return PlanLayout(context, std::move(graph)).Make();
}

}  // namespace gradflow
