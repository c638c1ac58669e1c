#include "gradflow/runtime/plan/plan_report.h"

#include <memory>
#include <utility>

#include "gradflow/core/status.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"

namespace gradflow {
namespace {

PlanReport::Change ChangeOf(const PlanOrigin& node, std::string origin) {
  return {node.name(), node.node->type_string(), {std::move(origin)}};
}

}  // namespace

void ReportMergedAndFolded(const PlanGraph& graph, PlanReport* report) {
  for (int32_t node = 0; node < graph.num_nodes(); ++node) {
    // The nodes of functions replace calls.
    if (!graph.is_replaced(node) || graph.label(node) != nullptr ||
        graph.origin(node).op().functional() != FunctionalOp::kNone) {
      continue;
    }
    const PlanGraph::Value by = graph.Resolve({node, PlanGraph::kControl});
    report->merged.push_back(
        ChangeOf(graph.origin_at_site(by.node), graph.origin_at_site(node).name()));
  }
  for (const int32_t node : graph.order()) {
    if (!graph.has_known_value(node)) continue;
    const PlanOrigin origin = graph.origin_at_site(node);
    report->folded.push_back(ChangeOf(origin, origin.name()));
  }
}

void ReportFused(const PlanGraph& graph, PlanReport* report) {
  report->planned_nodes += static_cast<int>(graph.order().size());
  for (const int32_t node : graph.order()) {
    const PlanNodeLabel* const label = graph.label(node);
    if (label == nullptr) continue;
    PlanReport::Change change = {label->name, label->op, {}};
    for (const PlanOrigin& origin : label->origins) change.origins.push_back(origin.name());
    report->fused.push_back(std::move(change));
  }
}

absl::StatusOr<PlanReport> ReportPlan(const Graph& graph, const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches,
                                      bool fold_batch_norms, bool integer_inference,
                                      bool tflite_rounding) {
  PlanReport report;
  PlanOptions options;
  options.fold_batch_norms = fold_batch_norms;
  options.integer_inference = integer_inference;
  options.tflite_rounding = tflite_rounding;
  options.report = &report;
  KernelCache kernels;
  PlanNames names;
  names.feeds = feeds;
  names.fetches = fetches;
  GRADFLOW_RETURN_IF_ERROR(Plan::Make(graph, names, &kernels, options).status());
  return report;
}

}  // namespace gradflow
