// Deadness: finds the nodes of a plan that may be in a branch that is not taken. Internal.
//
// A Switch passes its input to one output; the other outputs are dead. A node with a dead input, or
// that waits for a dead node, does not run and is dead. A Merge is dead if all its inputs are dead.
// The executor finds dead inputs by the states of their slots. A node that waits for a dead node
// without reading it needs help, because control edges have no slots.
//
// The analysis gives each value the conditions under which it is alive: "Switch condition c
// is true", and so on. A Merge of all branches of a condition is alive without that condition. All
// other Merges whose inputs have conditions are considered conditional, so the result is an upper
// bound.
#ifndef GRADFLOW_RUNTIME_PLAN_DEADNESS_H_
#define GRADFLOW_RUNTIME_PLAN_DEADNESS_H_

#include <cstdint>
#include <vector>

#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

// A control edge whose source may be dead while all inputs of `to` have values.
struct DeadControl {
  int32_t from;
  int32_t to;
};

// Returns these edges, ordered by `to` in topological order. Takes time linear in the size of the
// graph; returns at once if there is no Switch. REQUIRES, here and below: the graph has been pruned
std::vector<DeadControl> FindDeadControls(const PlanGraph& graph);

// Returns, for each node, whether it may be dead. Empty if there is no Switch.
std::vector<bool> FindMaybeDead(const PlanGraph& graph);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_DEADNESS_H_
