// From a GraphDef to a Graph, and from files to a GraphDef.
#ifndef GRADFLOW_GRAPH_IMPORT_H_
#define GRADFLOW_GRAPH_IMPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow {

class Graph;
class GraphDef;

struct ImportGraphDefOptions {
  // Nodes are named "prefix/name". They then take inputs from each other only; without a prefix
  // they may take inputs from nodes that the graph has already.
  std::string prefix;
  // Whether every node must have a kernel, for its types and on its device.
  bool require_kernels = true;
  bool infer_shapes = true;
};

// Adds the nodes of `graph_def`, in its order, with default attributes filled in. Everything is
// checked before anything is added, in time linear in the graph:
//
//   NOT_FOUND         ops are not registered, or UNIMPLEMENTED, they have no kernel for their
//                     types or device: all of them in one message, with near names
//   INVALID_ARGUMENT  the first of: bad or duplicate names, wrong, missing or unknown attributes,
//                     wrong inputs, cycles, colocation with nodes that do not exist, versions
//                     that exclude this reader, shapes that cannot be
//
// An empty graph takes over all else that the GraphDef holds (functions, versions, debug
// information, fields that gradflow does not know). To other graphs functions are added, and their
// versions are narrowed to what can read both.
absl::Status ImportGraphDef(const ImportGraphDefOptions& options, const GraphDef& graph_def,
                            Graph* graph);
// The same without a copy.
absl::Status ImportGraphDef(const ImportGraphDefOptions& options, GraphDef&& graph_def,
                            Graph* graph);

// Reads a file: text if its name ends in ".pbtxt", binary if in ".pb", otherwise what its content
// is. NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT for what is no GraphDef; the text names the
// file. The result is not checked: ImportGraphDef does that.
absl::StatusOr<GraphDef> ReadGraphDef(const std::string& path);
// The same from the content of a file.
absl::StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes);
absl::StatusOr<GraphDef> ParseGraphDefText(absl::string_view text);

}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_IMPORT_H_
