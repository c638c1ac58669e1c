#include "gradflow/graph/node_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gradflow::internal {
namespace {

// Enough nodes for several chunks of memory, including large chunks.
constexpr size_t kMany = 60'000;

TEST(NodeStore, KeepsNodesInTheirPlaces) {
  NodeStore nodes;
  std::vector<const Node*> places;
  while (nodes.size() < kMany) places.push_back(&nodes.Add());
  for (size_t i = 0; i < kMany; ++i) ASSERT_EQ(&nodes[i], places[i]) << i;
  // The nodes do not overlap.
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < kMany; ++i) ASSERT_LE(places[i - 1] + 1, places[i]) << i;
}

TEST(NodeStore, RemovesTheLastNodesAndContinues) {
  NodeStore nodes;
  // Removes nodes up to the middle or the end of a block or chunk of memory, and all nodes.
  for (const size_t kept : {kMany / 2, size_t{1000}, size_t{3 * 64}, size_t{65}, size_t{64},
                            size_t{63}, size_t{1}, size_t{0}}) {
    SCOPED_TRACE(kept);
    while (nodes.size() < kMany) nodes.Add();
    const Node* const last = kept == 0 ? nullptr : &nodes[kept - 1];
    nodes.Truncate(kept);
    EXPECT_EQ(nodes.size(), kept);
    Node& next = nodes.Add();
    EXPECT_EQ(&next, &nodes[kept]);
    EXPECT_EQ(nodes[kept].num_inputs(), 0);
    if (last != nullptr) {
      EXPECT_EQ(last, &nodes[kept - 1]);
    }
  }
}

}  // namespace
}  // namespace gradflow::internal
