// The JSON that a page of `gradflow view` shows. web/src/data/format.ts describes it.
#ifndef GRADFLOW_TOOLS_VIEW_GRAPH_JSON_H_
#define GRADFLOW_TOOLS_VIEW_GRAPH_JSON_H_

#include <string>

#include "gradflow/proto/op_def.pb.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/graph_diff.h"

namespace gradflow::tools {

struct GraphJsonOptions {
  // Shown as the title of the page.
  std::string title;
  // With a diff, the old graph. The page also shows removed nodes.
  const AnalyzedGraph* old_graph = nullptr;
  const GraphDiff* diff = nullptr;
  // The value of the key "run": the record of a run. Empty if there is no run.
  std::string run;
  // The value of the key "edit": the data for an editor. Empty if there is no editor.
  std::string edit;
};

// The kind of an op: unknown, registered with a definition, or a function of the graph.
enum class OpKind { kUnknown = 0, kRegistered = 1, kFunction = 2 };

// Returns an op as in the key "ops". With `for_editing`, attributes also have their minimum, their
// allowed values and their default as text of an AttrValue.
std::string OpJson(const std::string& name, const OpDef& def, OpKind kind,
                   bool for_editing = false);

// Returns the value on one line in protobuf text format, without its braces: "type: DT_FLOAT".
std::string AttrValueText(const AttrValue& value);

// Returns JSON. Its size is linear in the size of the graph and of the documentation of its ops.
std::string GraphJson(const AnalyzedGraph& graph, const GraphJsonOptions& options);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_GRAPH_JSON_H_
