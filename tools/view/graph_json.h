// The JSON that a page of `gradflow view` shows. web/src/data/format.ts describes it.
#ifndef GRADFLOW_TOOLS_VIEW_GRAPH_JSON_H_
#define GRADFLOW_TOOLS_VIEW_GRAPH_JSON_H_

#include <string>

#include "tools/view/analyzed_graph.h"
#include "tools/view/graph_diff.h"

namespace gradflow::tools {

struct GraphJsonOptions {
  // Shown as the title of the page.
  std::string title;
  // With a diff, the old graph that it compares with; removed nodes are shown among the others.
  const AnalyzedGraph* old_graph = nullptr;
  const GraphDiff* diff = nullptr;
  // A value of the key "run": what a run did; empty for none.
  std::string run;
};

// Returns JSON of a size that is linear in that of the graph and of the documentation of its ops.
std::string GraphJson(const AnalyzedGraph& graph, const GraphJsonOptions& options);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_GRAPH_JSON_H_
