// From a Graph to a GraphDef, and from a GraphDef to files.
#ifndef GRADFLOW_GRAPH_EXPORT_H_
#define GRADFLOW_GRAPH_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;
class GraphDef;

// How ExportGraphDef writes a graph.
struct ExportGraphDefOptions {
  // Leave out attributes that have their default value, so that readers that do not know them yet
  // can read the graph.
  bool strip_default_attrs = false;
};

// The whole graph, with all that came with it when it was imported.
absl::Status ExportGraphDef(const Graph& graph, const ExportGraphDefOptions& options,
                            GraphDef* graph_def);

// The bytes of a file. Equal graphs have equal bytes. INVALID_ARGUMENT if there would be 2 GiB or
// more.
absl::StatusOr<std::string> SerializeGraphDef(const GraphDef& graph_def);
// The text of a file. Fields that gradflow does not know are kept in comments at its end.
std::string GraphDefToText(const GraphDef& graph_def);

// Writes a file, as text if its name ends in ".pbtxt". It appears whole or not at all: it is
// written beside `path` and renamed.
absl::Status WriteGraphDef(const std::string& path, const GraphDef& graph_def);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_EXPORT_H_
