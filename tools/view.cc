// gradflow view: writes a page that shows a graph, or the difference of two.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/models.h"
#include "tools/names.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/dot.h"
#include "tools/view/graph_diff.h"
#include "tools/view/graph_json.h"
#include "tools/view/page.h"

namespace gradflow::tools {
absl::Status ViewCommand(const ViewFlags& flags) {
  const bool is_dot = absl::EndsWith(flags.output, ".dot") || absl::EndsWith(flags.output, ".gv");
  if (!is_dot && !absl::EndsWith(flags.output, ".html")) {
    return errors::InvalidArgument("--output '", flags.output, "' must end in .html, .dot or .gv");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const GraphLimits limits,
                            MakeGraphLimits(flags.graph_limits, flags.limits));
  GRADFLOW_ASSIGN_OR_RETURN(GraphDef def, ReadModelGraph(flags.graph, flags.tag, limits));
  AnalyzedGraph graph = AnalyzeGraph(std::move(def), limits);
  GraphJsonOptions options;
  options.title = std::string(FileName(flags.graph));
  std::optional<AnalyzedGraph> old_graph;
  std::optional<GraphDiff> diff;
  if (!flags.diff.empty()) {
    // GRAPH is the old graph. --diff names the new graph, which the page shows.
    old_graph = std::move(graph);
    GRADFLOW_ASSIGN_OR_RETURN(GraphDef new_def, ReadModelGraph(flags.diff, "", limits));
    graph = AnalyzeGraph(std::move(new_def), limits);
    diff = DiffGraphs(*old_graph, graph);
    options.old_graph = &*old_graph;
    options.diff = &*diff;
    absl::StrAppend(&options.title, " -> ", FileName(flags.diff));
  }
  std::string content;
  if (is_dot) {
    content = DotText(graph, options.old_graph, options.diff);
  } else {
    GRADFLOW_ASSIGN_OR_RETURN(content, Page(GraphJson(graph, options)));
  }
  return errors::Prefix(absl::StrCat("'", flags.output, "': "),
                        internal::WriteFile(flags.output, {content}));
}

}  // namespace gradflow::tools
