// PlanNodes: the nodes of a plan in the making, after they have been chosen and before they are
// laid out. Optimizations work on it. Not for users.
#ifndef GRADFLOW_RUNTIME_PLAN_PLAN_NODES_H_
#define GRADFLOW_RUNTIME_PLAN_PLAN_NODES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/graph/node.h"
#include "gradflow/runtime/plan/kernel_cache.h"

namespace gradflow {

inline bool IsPlaceholder(const Node& node) {
  return node.type_string() == "Placeholder" || node.type_string() == "PlaceholderV2";
}

// Prefetches a node that will be needed kNodesAhead nodes later. For loops over the nodes of large
// graphs, which are bound by memory latency.
inline constexpr int kNodesAhead = 8;
inline void PrefetchNode(const Node* node) {
  constexpr size_t kLine = 64;
  const char* const begin = reinterpret_cast<const char*>(node);
  for (size_t i = 0; i < sizeof(Node); i += kLine) __builtin_prefetch(begin + i);
}

struct PlanNodes {
  // Returns the index of the feed of this output, or -1.
  int FeedOf(const Node& node, int output) const {
    if (feeds.empty()) return -1;
    const auto it = feeds.find({node.id(), output});
    return it == feeds.end() ? -1 : it->second;
  }
  bool IsFedPlaceholder(const Node& node) const {
    return !feeds.empty() && IsPlaceholder(node) && FeedOf(node, 0) >= 0;
  }
  // Returns true if a feed replaces the edge.
  bool IsCut(const Node::Source& source) const {
    return source.output < 0 ? IsFedPlaceholder(*source.node)
                             : FeedOf(*source.node, source.output) >= 0;
  }
  int32_t PositionOf(const Node& node) const { return position[node.id()]; }
  // Returns a kernel that produces the node's values without inputs, or null.
  const OpKernel* ConstantOf(const Node& node) const {
    if (constants.empty()) return nullptr;
    const auto it = constants.find(node.id());
    return it == constants.end() ? nullptr : it->second.kernel.get();
  }
  // Returns the sources of a node's inputs, including those that a feed replaces. Empty for a
  // folded node.
  absl::Span<const Node::Source> SourcesOf(const Node& node) const {
    return ConstantOf(node) != nullptr ? absl::Span<const Node::Source>() : node.sources();
  }

  // (node id, output) -> index of the feed.
  absl::flat_hash_map<std::pair<int, int>, int> feeds;
  // Targets, and nodes that are fetched but not fed.
  std::vector<const Node*> roots;
  // In topological order.
  std::vector<const Node*> order;
  // By node id: the position in `order` of the node, or of the node that replaces it; negative for
  // nodes that are not needed.
  std::vector<int32_t> position;
  // By node id: the nodes of `order` whose values are known.
  absl::flat_hash_map<int, FoldedNode> constants;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_PLAN_NODES_H_
