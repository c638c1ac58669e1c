// Imports a GraphDef into a Graph, and reads GraphDefs from bytes, text and files.
#ifndef GRADFLOW_GRAPH_IMPORT_H_
#define GRADFLOW_GRAPH_IMPORT_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;
class GraphDef;

// Limits of the size of an untrusted GraphDef, and so of the time and memory that it costs. A
// larger one is INVALID_ARGUMENT, and the text names the limit. docs/security.md lists all other
// checks.
//
// Several imports into one graph, such as those of a session's Create and Extend, have the limits
// of a graph together.
struct GraphLimits {
  // ---- Of bytes and text, before they are parsed ----

  // Bytes of a file. Protobuf accepts less than 2 GiB, whatever the limit. Also the bytes of all
  // GraphDefs after the first that are added to a graph, and of the graph they are added to.
  int64_t max_file_bytes = (int64_t{1} << 31) - 1;
  // Depth of nested messages, at most 100. The value of a node's attribute has depth 3.
  int max_depth = 100;
  // Estimated memory of the messages of a file. An empty message has 2 bytes in a file, and
  // hundreds in memory.
  int64_t max_message_bytes = int64_t{4} << 30;

  // ---- Of a graph, including the nodes of its functions ----

  int64_t max_nodes = 10'000'000;
  int64_t max_functions = 100'000;
  // Data and control inputs of a node.
  int64_t max_inputs = 1 << 20;
  int64_t max_attrs = 1000;
  // Outputs of all nodes that are elements of lists. A short attribute can make a long list.
  int64_t max_list_outputs = 1 << 20;
  // Bytes of the name of a node, function, argument, result, attribute or device.
  int64_t max_name_bytes = 10'000;
  // Elements of an attribute that is a list.
  int64_t max_list_length = 1 << 20;
  // Bytes of the tensors in all attributes together. A constant that repeats one value needs a few
  // bytes in a file for any number of elements.
  int64_t max_constant_bytes = int64_t{2} << 30;
  // Bytes of the inferred shapes. A node of few bytes can have shapes of 254 dimensions.
  int64_t max_shape_bytes = int64_t{256} << 20;

  // ---- Of time ----

  // The import ends with DEADLINE_EXCEEDED soon after this.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Options of ImportGraphDef.
struct ImportGraphDefOptions {
  // If not empty, nodes are named "prefix/name" and take inputs from each other only. Without a
  // prefix they may also take inputs from nodes that the graph already has.
  std::string prefix;
  // Requires a kernel for every node's types and device.
  bool require_kernels = true;
  bool infer_shapes = true;
  GraphLimits limits;
  // Allows NaN in attributes, which no op of TensorFlow has a use for.
  bool allow_nan_attributes = false;
};

// Adds the nodes of `graph_def`, in its order, and fills in default attributes. Checks everything
// before it adds anything, in time linear in the graph. Errors:
//
//   NOT_FOUND         ops are not registered; one message names all of them, with near names
//   UNIMPLEMENTED     ops have no kernel for their types or device; likewise
//   INVALID_ARGUMENT  the first of: bad or duplicate names, wrong, missing or unknown attributes,
//                     wrong inputs, cycles, colocation with nodes that do not exist, versions
//                     that exclude this reader, functions that call themselves, what exceeds
//                     the limits, shapes that cannot be
//
// An empty graph takes everything else that the GraphDef holds: functions, versions, debug
// information and unknown fields. A graph with nodes takes the functions, and its versions are
// narrowed to those that can read both.
absl::Status ImportGraphDef(const ImportGraphDefOptions& options, const GraphDef& graph_def,
                            Graph* graph);
// As above, without a copy. On error `graph_def` is in an unspecified state.
absl::Status ImportGraphDef(const ImportGraphDefOptions& options, GraphDef&& graph_def,
                            Graph* graph);

// Reads a file: text if its name ends in ".pbtxt", binary if in ".pb", otherwise according to its
// content. NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT with the place in the file and the
// fault there (truncated, not UTF-8, duplicate key of a map, beyond a limit). The text names the
// file. Does not check the graph, which ImportGraphDef does.
absl::StatusOr<GraphDef> ReadGraphDef(const std::string& path, const GraphLimits& limits = {});
// As ReadGraphDef(), for the content of a file.
absl::StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes, const GraphLimits& limits = {});
absl::StatusOr<GraphDef> ParseGraphDefText(absl::string_view text, const GraphLimits& limits = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_IMPORT_H_
