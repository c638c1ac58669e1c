// CopiedValues: follows chains of Identity nodes. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_COPIED_VALUES_H_
#define GRADFLOW_RUNTIME_PLAN_COPIED_VALUES_H_

#include <vector>

#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {

class CopiedValues {
 public:
  // Takes time linear in the size of the graph. REQUIRES: the graph has been pruned
  explicit CopiedValues(const PlanGraph& graph);

  // Returns the value that `value` copies through Identity nodes of the graph, or `value` itself.
  PlanGraph::Value SourceOf(PlanGraph::Value value) const {
    return value.is_feed() || value.is_control() || !is_copy_[value.node] ? value
                                                                          : sources_[value.node];
  }

 private:
  // Indexed by node.
  std::vector<bool> is_copy_;
  std::vector<PlanGraph::Value> sources_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_COPIED_VALUES_H_
