// The difference of two graphs: which nodes were added, removed or changed.
#ifndef GRADFLOW_TOOLS_VIEW_GRAPH_DIFF_H_
#define GRADFLOW_TOOLS_VIEW_GRAPH_DIFF_H_

#include <string>
#include <vector>

#include "tools/view/analyzed_graph.h"

namespace gradflow::tools {

struct GraphDiff {
  // For each node of the old graph the one of the new graph that it corresponds to, or -1 if it was
  // removed; and the reverse, -1 for nodes that were added.
  std::vector<int> new_of_old;
  std::vector<int> old_of_new;
  // For each node of the new graph that is not added, what changed: "attr num_bits: 8 -> 4". Empty
  // for nodes that are the same.
  std::vector<std::vector<std::string>> changes;
};

// Nodes correspond if no others compute the same from the same inputs, or have the same op and
// constants, or are beside such nodes; or else if they have the same name, or the same op at the
// same place between nodes that correspond. Takes time O(n log n + edges). Attributes with their
// default equal missing ones.
GraphDiff DiffGraphs(const AnalyzedGraph& old_graph, const AnalyzedGraph& new_graph);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_GRAPH_DIFF_H_
