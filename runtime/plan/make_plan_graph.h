// MakePlanGraph builds a plan's intermediate form from a graph and the names of a run. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_MAKE_PLAN_GRAPH_H_
#define GRADFLOW_RUNTIME_PLAN_MAKE_PLAN_GRAPH_H_

#include "absl/status/statusor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// Prunes `graph` to the nodes that the fetches and targets need. Feeds replace the tensors that
// they feed, and constants replace the nodes that the kernel cache has folded. Returns the errors
// of Plan::Make.
absl::StatusOr<PlanGraph> MakePlanGraph(const Graph& graph, const PlanNames& names,
                                        const PassContext& context);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_MAKE_PLAN_GRAPH_H_
