// gradflow convert: converts a GraphDef between binary and text, or to the C++ program that builds
// it. File names determine the formats.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/file.h"
#include "gradflow/proto/graph.pb.h"
#include "tools/commands.h"
#include "tools/edit/cpp_writer.h"
#include "tools/graph_limits.h"
#include "tools/models.h"
#include "tools/names.h"

namespace gradflow::tools {

// Does not validate the graph, unless it becomes C++: unknown ops are allowed.
absl::Status ConvertCommand(const ConvertFlags& flags) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphLimits limits,
                            MakeGraphLimits(flags.graph_limits, flags.limits));
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadModelGraph(flags.from, flags.tag, limits));
  if (absl::EndsWith(flags.to, ".cc")) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string program,
                              CppProgram(graph, FileName(flags.from), limits));
    return errors::Prefix(absl::StrCat("'", flags.to, "': "),
                          internal::WriteFile(flags.to, {program}));
  }
  return WriteGraphDef(flags.to, graph);
}

}  // namespace gradflow::tools
