// Optimizations that make a plan smaller without changing the results of a run: its values are the
// same bit by bit, and so are the errors that it may end with. Not for users.
//
// Both functions change pure nodes only: nodes whose outputs are a function of their inputs and
// attributes alone, according to their op (it is not stateful, and has no reference to change).
// Placeholders are not pure. Each function takes time linear in the plan.
#ifndef GRADFLOW_RUNTIME_PLAN_OPTIMIZE_H_
#define GRADFLOW_RUNTIME_PLAN_OPTIMIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan_nodes.h"

namespace gradflow {

bool IsPure(const Node& node);

// Eliminates common subexpressions: of pure nodes of one op with the same attributes, device,
// inputs and control inputs, keeps the first, which replaces the others, also in errors. Compares
// attributes by their bits. Keeps nodes with large attributes (long constants) as they are.
void EliminateCommonSubexpressions(PlanNodes* nodes);

// Folds constants: runs pure nodes of constants on the calling thread, replaces them by their
// values, and adds these to `kernels` for later plans. A node that fails is kept, and fails in the
// run if it gets there. Also kept are nodes with control inputs from nodes of the run, nodes of
// strings, and nodes whose inputs or outputs would make the memory in use exceed `max_bytes`.
//
// `limits` are those of the run that waits for the plan. If their flags end the folding, the status
// says so, with the name of the node that was stopped, which may be folded another time. `kernels`
// then has the nodes folded before.
absl::Status FoldConstants(int64_t max_bytes, const RunLimits& limits, KernelCache* kernels,
                           PlanNodes* nodes);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_OPTIMIZE_H_
