// A graph in the language of Graphviz.
#ifndef GRADFLOW_TOOLS_VIEW_DOT_H_
#define GRADFLOW_TOOLS_VIEW_DOT_H_

#include <string>

#include "tools/view/analyzed_graph.h"
#include "tools/view/graph_diff.h"

namespace gradflow::tools {

// Returns a digraph: a box for each node, a cluster for each name scope, an edge for each input,
// with type and shape; control edges are dashed, and nodes that cannot run are red. With a diff,
// added nodes are green, changed nodes are yellow, and removed nodes are dotted.
std::string DotText(const AnalyzedGraph& graph, const AnalyzedGraph* old_graph = nullptr,
                    const GraphDiff* diff = nullptr);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_DOT_H_
