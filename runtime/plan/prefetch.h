// Prefetching for loops over the nodes of large graphs, which are bound by memory latency.
// Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_PREFETCH_H_
#define GRADFLOW_RUNTIME_PLAN_PREFETCH_H_

#include <cstddef>

#include "gradflow/graph/node.h"

namespace gradflow {

// A loop prefetches the node that it needs this many nodes later.
inline constexpr int kNodesAhead = 8;

inline void PrefetchNode(const Node* node) {
  constexpr size_t kLine = 64;
  const char* const begin = reinterpret_cast<const char*>(node);
  for (size_t i = 0; i < sizeof(Node); i += kLine) __builtin_prefetch(begin + i);
}

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PREFETCH_H_
