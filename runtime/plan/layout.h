// LayOutPlan: from the intermediate form to the flat arrays that the executor reads.
// Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_LAYOUT_H_
#define GRADFLOW_RUNTIME_PLAN_LAYOUT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// Numbers the live nodes in topological order, makes their kernels and assigns a slot to every
// tensor. REQUIRES: the graph has been pruned
absl::StatusOr<std::shared_ptr<const Plan>> LayOutPlan(const PassContext& context, PlanGraph graph);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_LAYOUT_H_
