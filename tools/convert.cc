// gradflow convert: a GraphDef from binary to text and back, as the files' names say.
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "tools/commands.h"

namespace gradflow::tools {

// The graph is not validated: graphs of ops that are not ours convert too.
absl::Status ConvertCommand(const std::string& from, const std::string& to) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadGraphDef(from));
  return WriteGraphDef(to, graph);
}

}  // namespace gradflow::tools
