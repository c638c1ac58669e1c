#include "gradflow/runtime/plan/copied_values.h"

namespace gradflow {

CopiedValues::CopiedValues(const PlanGraph& graph)
    : is_copy_(graph.num_nodes()), sources_(graph.num_nodes()) {
  for (const int32_t node : graph.order()) {
    if (!graph.is_original(node) || graph.has_known_value(node) ||
        graph.origin(node).type_string() != "Identity") {
      continue;
    }
    is_copy_[node] = true;
    sources_[node] = SourceOf(graph.edge(node, 0));
  }
}

}  // namespace gradflow
