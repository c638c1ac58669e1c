#include "gradflow/graph/export.h"

#include "gradflow/core/op_def_util.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/graph/graph.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {

absl::Status ExportGraphDef(const Graph& graph, const ExportGraphDefOptions& options,
                            GraphDef* graph_def) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(graph_def, "ExportGraphDef", "graph_def"));
  *graph_def = graph.def();
  if (options.strip_default_attrs) {
    for (int id = 0; id < graph.num_nodes(); ++id) {
      StripDefaultsFromNodeDef(graph.node(id)->op_def(), graph_def->mutable_node(id));
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow
