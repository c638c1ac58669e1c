// gradflow convert: converts a GraphDef between binary and text. File names determine the formats.
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"

namespace gradflow::tools {

// Does not validate the graph: unknown ops are allowed.
absl::Status ConvertCommand(const ConvertFlags& flags) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphLimits limits, MakeGraphLimits(flags.graph_limits));
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadGraphDef(flags.from, limits));
  return WriteGraphDef(flags.to, graph);
}

}  // namespace gradflow::tools
