// PlanReport: what the passes of a plan do, for `gradflow inspect --plan`. Internal.
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
  // The number of nodes that the fetches and targets need, and the number of nodes in the plan.
  int needed_nodes = 0;
  int planned_nodes = 0;
  // Groups of nodes that common-subexpression elimination has merged into the first.
  std::vector<Change> merged;
  // Nodes that constant folding has computed.
  std::vector<Change> folded;
  // Nodes that later passes have added.
  std::vector<Change> fused;
  // With PlanOptions::integer_inference, the nodes that compute in floats although they are
  // convolutions, matrix products or fake-quantization nodes, or read integers. The only origin is
  // the reason.
  std::vector<Change> in_float;
};

// Makes a plan like a session does, and reports on it. Returns the errors of Plan::Make().
absl::StatusOr<PlanReport> ReportPlan(const Graph& graph, const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches,
                                      bool fold_batch_norms, bool integer_inference = false,
                                      bool tflite_rounding = false);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_REPORT_H_
