// What makes a plan smaller without changing what a run gives: its values to the bit, and which
// errors it may end with. Not for users.
//
// Both functions touch pure nodes only: those whose outputs are a function of their inputs and
// attributes alone, as far as their op says (it is not stateful, and has no reference to change).
// Placeholders are none of them. Each takes time linear in the plan.
#ifndef GRADFLOW_RUNTIME_OPTIMIZE_H_
#define GRADFLOW_RUNTIME_OPTIMIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gradflow/runtime/kernel_cache.h"
#include "gradflow/runtime/plan_nodes.h"
#include "gradflow/runtime/run_limits.h"

namespace gradflow {

bool IsPure(const Node& node);

// Of pure nodes of one op, with the same attributes, device, inputs and control inputs, keeps the
// first, which stands for the others from then on, also in errors. Attributes are compared by their
// bits; nodes with large ones (long constants) stay as they are.
void MergeIdenticalNodes(PlanNodes* nodes);

// Runs pure nodes of constants now, on the calling thread, and puts their values in their place and
// into `kernels`, for plans to come. A node that fails stays, and fails in the run, if it gets
// there. So do nodes with control inputs from nodes of the run, nodes of strings, and those whose
// inputs or outputs would make the memory in use exceed `max_bytes`. `limits` are those of the run
// that waits for this: where their flags end it, the status says so, with the name of the node that
// was stopped, which may be folded another time; `kernels` gets what was finished before.
absl::Status FoldConstants(int64_t max_bytes, const RunLimits& limits, KernelCache* kernels,
                           PlanNodes* nodes);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_OPTIMIZE_H_
