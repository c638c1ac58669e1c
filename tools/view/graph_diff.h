// The difference of two graphs: which nodes were added, removed or changed.
#ifndef GRADFLOW_TOOLS_VIEW_GRAPH_DIFF_H_
#define GRADFLOW_TOOLS_VIEW_GRAPH_DIFF_H_

#include <string>
#include <vector>

#include "tools/view/analyzed_graph.h"

namespace gradflow::tools {

struct GraphDiff {
  // For each node of the old graph, the corresponding node of the new graph, or -1 if the node was
  // removed; and the reverse, with -1 for nodes that were added.
  std::vector<int> new_of_old;
  std::vector<int> old_of_new;
  // For each node of the new graph that is not added, the changes: "attr num_bits: 8 -> 4". Empty
  // for unchanged nodes.
  std::vector<std::vector<std::string>> changes;
};

// Compares two graphs. Two nodes correspond if they are the only nodes with the same computation
// from the same inputs, or with the same op and constants, or if they are neighbors of such nodes.
// Other nodes correspond if they have the same name, or the same op at the same place between
// corresponding nodes. An attribute with its default value equals a missing attribute. Takes time
// O(n log n + edges).
GraphDiff DiffGraphs(const AnalyzedGraph& old_graph, const AnalyzedGraph& new_graph);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_GRAPH_DIFF_H_
