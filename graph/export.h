// Writes a Graph to a GraphDef, and a GraphDef to bytes, text and files.
#ifndef GRADFLOW_GRAPH_EXPORT_H_
#define GRADFLOW_GRAPH_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;
class GraphDef;

// Options of ExportGraphDef.
struct ExportGraphDefOptions {
  // Omits attributes that have their default value, so that readers that do not know them yet can
  // read the graph.
  bool strip_default_attrs = false;
};

// Copies the graph to *graph_def, with everything that it was imported with.
absl::Status ExportGraphDef(const Graph& graph, const ExportGraphDefOptions& options,
                            GraphDef* graph_def);

// Returns the bytes of a binary file. Equal graphs have equal bytes. Returns INVALID_ARGUMENT if
// there are 2 GiB or more.
absl::StatusOr<std::string> SerializeGraphDef(const GraphDef& graph_def);
// Returns the content of a text file. Comments at its end hold the fields that gradflow does not
// know.
std::string GraphDefToText(const GraphDef& graph_def);

// Writes a file, as text if its name ends in ".pbtxt" and as bytes if it ends in ".pb". Returns
// INVALID_ARGUMENT for other names. The file appears whole or not at all: it is written next to
// `path` and renamed.
absl::Status WriteGraphDef(const std::string& path, const GraphDef& graph_def);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_EXPORT_H_
