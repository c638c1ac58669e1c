// The C++ program that builds a graph with Scope and the generated classes of ops.
#ifndef GRADFLOW_TOOLS_EDIT_CPP_WRITER_H_
#define GRADFLOW_TOOLS_EDIT_CPP_WRITER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// Returns a source with a function BuildGraph and a program that writes the graph to a file.
// BuildGraph adds the nodes of the graph, with their names, attributes and control dependencies, to
// a scope. The functions of the graph are text in the source. A comment has `title`, the name of
// the graph.
//
// Returns the errors of ImportGraphDef; UNIMPLEMENTED if the graph has a cycle, or calls a function
// by its name; RESOURCE_EXHAUSTED if the source would have more than 64 MiB.
absl::StatusOr<std::string> CppProgram(const GraphDef& graph, absl::string_view title,
                                       const GraphLimits& limits);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_CPP_WRITER_H_
