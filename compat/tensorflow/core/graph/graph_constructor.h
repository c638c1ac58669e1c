// ImportGraphDef and ConvertGraphDefToGraph. See gradflow/graph/import.h for errors and limits.
#ifndef GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_CONSTRUCTOR_H_
#define GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_CONSTRUCTOR_H_

#include "gradflow/graph/import.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

// Options of ConvertGraphDefToGraph. No effect: a graph may contain internal ops, and needs no
// kernels.
struct GraphConstructorOptions {
  bool allow_internal_ops = false;
  bool expect_device_spec = false;
  bool validate_nodes = true;
  bool add_default_attributes = true;
};

using gradflow::ImportGraphDef;
using gradflow::ImportGraphDefOptions;

// Adds the nodes of `graph_def` to `graph`.
inline absl::Status ConvertGraphDefToGraph(const GraphConstructorOptions&,
                                           const GraphDef& graph_def, Graph* graph) {
  gradflow::ImportGraphDefOptions options;
  options.require_kernels = false;
  return gradflow::ImportGraphDef(options, graph_def, graph);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_CONSTRUCTOR_H_
