// MakePlanGraph: from a graph and the names of a run to the plan's intermediate form.
// Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_MAKE_PLAN_GRAPH_H_
#define GRADFLOW_RUNTIME_PLAN_MAKE_PLAN_GRAPH_H_

#include "absl/status/statusor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// Prunes `graph` to the nodes that the fetches and targets need, with feeds in the place of the
// tensors that they feed, and with the constants that the kernel cache has folded. Errors are those
// of Plan::Make.
absl::StatusOr<PlanGraph> MakePlanGraph(const Graph& graph, const PlanNames& names,
                                        const PassContext& context);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_MAKE_PLAN_GRAPH_H_
