// gradflow convert: converts a GraphDef between binary and text. File names determine the formats.
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "tools/commands.h"

namespace gradflow::tools {

// Does not validate the graph: unknown ops are allowed.
absl::Status ConvertCommand(const std::string& from, const std::string& to) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadGraphDef(from));
  return WriteGraphDef(to, graph);
}

}  // namespace gradflow::tools
