// LayOutPlan turns a plan's intermediate form into the flat arrays that the executor reads.
// Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_LAYOUT_H_
#define GRADFLOW_RUNTIME_PLAN_LAYOUT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// Numbers the live nodes in topological order, makes their kernels and assigns a slot to every
// tensor. The caller makes the plans that nodes run (Plan::calls). `is_callee` is true if a node of
// another plan runs this plan. Returns UNIMPLEMENTED if arguments or results of such plans are not
// on the first device. REQUIRES: the graph has been pruned
absl::StatusOr<std::shared_ptr<Plan>> LayOutPlan(const PassContext& context, PlanGraph graph,
                                                 bool is_callee);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_LAYOUT_H_
