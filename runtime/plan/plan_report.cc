#include "gradflow/runtime/plan/plan_report.h"

#include <memory>
#include <utility>

#include "gradflow/core/status.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"

namespace gradflow {
namespace {

PlanReport::Change ChangeOf(const Node& node, const std::string& origin) {
  return {node.name(), node.type_string(), {origin}};
}

}  // namespace

void ReportMergedAndFolded(const PlanGraph& graph, PlanReport* report) {
  for (int32_t node = 0; node < graph.num_nodes(); ++node) {
    if (!graph.is_replaced(node) || graph.label(node) != nullptr) continue;
    const PlanGraph::Value by = graph.Resolve({node, PlanGraph::kControl});
    report->merged.push_back(ChangeOf(graph.origin(by.node), graph.origin(node).name()));
  }
  for (const int32_t node : graph.order()) {
    if (!graph.has_known_value(node)) continue;
    report->folded.push_back(ChangeOf(graph.origin(node), graph.origin(node).name()));
  }
}

void ReportFused(const PlanGraph& graph, PlanReport* report) {
  report->planned_nodes = static_cast<int>(graph.order().size());
  for (const int32_t node : graph.order()) {
    const PlanNodeLabel* const label = graph.label(node);
    if (label == nullptr) continue;
    PlanReport::Change change = {label->name, label->op, {}};
    for (const Node* origin : label->origins) change.origins.push_back(origin->name());
    report->fused.push_back(std::move(change));
  }
}

absl::StatusOr<PlanReport> ReportPlan(const Graph& graph, const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches,
                                      bool fold_batch_norms) {
  PlanReport report;
  PlanOptions options;
  options.fold_batch_norms = fold_batch_norms;
  options.report = &report;
  KernelCache kernels;
  PlanNames names;
  names.feeds = feeds;
  names.fetches = fetches;
  GRADFLOW_RETURN_IF_ERROR(Plan::Make(graph, names, &kernels, options).status());
  return report;
}

}  // namespace gradflow
