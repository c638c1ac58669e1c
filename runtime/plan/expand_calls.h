// Makes the graphs of the plans that nodes call: for the functions of If, Case, While and For, and
// for calls that are not inlined. ExpandCalls() (passes.h) inlines the other calls. Internal.
//
// A call is inlined unless it is within the same function (a recursion), the function has more
// nodes than remain in the plan's budget for inlined nodes, the function has version 1 control
// flow, or the call may be in a branch of a Switch that is not taken. The nodes of the function
// take the place of the calling node. A reader of an output of the call reads the result itself.
// Nodes that wait for the call wait for all of its results and effects: the control outputs of the
// function and its stateful nodes. Effects run even if no result needs them. Two kinds of nodes of
// the function wait for the control inputs of the call: nodes that read an argument, and nodes that
// are not pure and do not read a node that waits. Other nodes wait only for the nodes that they
// read.
#ifndef GRADFLOW_RUNTIME_PLAN_EXPAND_CALLS_H_
#define GRADFLOW_RUNTIME_PLAN_EXPAND_CALLS_H_

#include "absl/status/statusor.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// The role of a plan that a node calls. Its feeds are the arguments of the function.
enum class CalleeRole : uint8_t {
  // Fetches the results of the function.
  kBody,
  // The condition of a While before its first iteration: fetches the condition and all arguments.
  kLoopEntry,
  // One iteration of a While: the body, and after it the condition. Fetches the condition and the
  // results of the body.
  kLoopIteration,
};

// A plan that the node `call` runs.
struct Callee {
  CalleeRole role = CalleeRole::kBody;
  PlanOrigin call;
  // The function, or the condition of a While.
  const FunctionBody* body = nullptr;
  // The body of a While.
  const FunctionBody* loop_body = nullptr;
};

// Charges nodes, edges and outputs of functions, and of copies that plans of loops make, to the
// budget of the plan. `node` is the call or the loop that adds them. Returns RESOURCE_EXHAUSTED
// with its name if they exceed the budget.
absl::Status ChargeFunctions(const PassContext& context, const PlanOrigin& node, int64_t size);

// Makes the graph of the plan. Its calls are not expanded yet.
absl::StatusOr<PlanGraph> MakeCalleeGraph(const PassContext& context, const Callee& callee);

// Returns true if `body` is called at the site or at a caller of the site.
bool IsWithin(const CallSite* site, const FunctionBody& body);

// Returns true if the function of the plan, or the body of its loop, is called at the site of the
// call or at a caller of the site.
bool Recurs(const Callee& callee);

// Returns the plans that the node of a plan calls. REQUIRES: the op of the node is functional
absl::StatusOr<std::vector<Callee>> CalleesOf(const PlanOrigin& call);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_EXPAND_CALLS_H_
