// PlanReport: what the passes of a plan do, for `gradflow inspect --plan`. Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_PLAN_REPORT_H_
#define GRADFLOW_RUNTIME_PLAN_PLAN_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;

struct PlanReport {
  struct Change {
    // The node of the plan that stands for others, and its operation.
    std::string name;
    std::string op;
    // The nodes of the graph that it stands for.
    std::vector<std::string> origins;
  };
  // The nodes that the fetches and targets need, and those of the plan.
  int needed_nodes = 0;
  int planned_nodes = 0;
  // Nodes of which common-subexpression elimination has kept the first.
  std::vector<Change> merged;
  // Nodes that constant folding has computed.
  std::vector<Change> folded;
  // Nodes that later passes have added.
  std::vector<Change> fused;
};

// Makes a plan as a session does, and reports on it. Errors are those of Plan::Make().
absl::StatusOr<PlanReport> ReportPlan(const Graph& graph, const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches,
                                      bool fold_batch_norms);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_REPORT_H_
