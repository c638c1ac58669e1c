// Passes: functions that rewrite a plan before it is laid out, each in a file of its own.
//
// The optimizations make a plan smaller without changing the results of a run: its values are the
// same bit by bit, and so are the errors that it may end with. They change pure nodes only
// (op_traits.h). Each pass takes time linear in the plan. Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_PASSES_H_
#define GRADFLOW_RUNTIME_PLAN_PASSES_H_

#include "absl/status/status.h"
#include "gradflow/runtime/executor/run_limits.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// What a pass may use besides the plan.
struct PassContext {
  const PlanOptions& options;
  // Those of the run that waits for the plan. If their flags end a pass, its status says so, with
  // the name of the node that was stopped.
  const RunLimits& limits;
  KernelCache* kernels;
};

// Eliminates common subexpressions: of pure nodes of one op with the same attributes, device,
// inputs and control inputs, keeps the first, which replaces the others, also in errors. Compares
// attributes by their bits. Keeps nodes with large attributes (long constants) as they are.
absl::Status EliminateCommonSubexpressions(const PassContext& context, PlanGraph* graph);

// Folds constants: runs pure nodes of constants on the calling thread, replaces them by their
// values, and adds these to the kernel cache for later plans. A node that fails is kept, and fails
// in the run if it gets there. Also kept are nodes with control inputs from nodes of the run, nodes
// of strings, and nodes whose inputs or outputs would make the memory in use exceed
// PlanOptions::max_folded_bytes. If the limits end it, the cache has the nodes folded before.
absl::Status FoldConstants(const PassContext& context, PlanGraph* graph);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PASSES_H_
