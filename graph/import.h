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

// Limits on the size of an untrusted GraphDef. They bound the time and memory of an import.
// Exceeding a limit returns INVALID_ARGUMENT, and the error text names the limit. docs/security.md
// lists all other checks.
//
// The limits of a graph apply to all imports into it together, such as a session's Create and
// Extend.
struct GraphLimits {
  // ---- Limits on the serialized bytes or text, checked before parsing ----

  // Bytes of a file. Protobuf accepts less than 2 GiB, regardless of this limit. If the graph
  // already has nodes, an import also limits the total: the bytes of that graph plus the bytes of
  // all GraphDefs that are added to it.
  int64_t max_file_bytes = (int64_t{1} << 31) - 1;
  // Depth of nested messages, at most 100. The value of a node's attribute has depth 3.
  int max_depth = 100;
  // Estimated memory of the messages of a file. An empty message takes 2 bytes in a file, and
  // hundreds of bytes in memory.
  int64_t max_message_bytes = int64_t{4} << 30;

  // ---- Limits of a graph, including the nodes of its functions ----

  int64_t max_nodes = 10'000'000;
  int64_t max_functions = 100'000;
  // Data and control inputs of a node.
  int64_t max_inputs = 1 << 20;
  int64_t max_attrs = 1000;
  // Tensors in the list outputs of all nodes together. A short attribute can make a long list.
  int64_t max_list_outputs = 1 << 20;
  // Bytes of the name of a node, function, argument, result, attribute or device.
  int64_t max_name_bytes = 10'000;
  // Elements of an attribute that is a list.
  int64_t max_list_length = 1 << 20;
  // Bytes of the tensors in all attributes together. A constant that repeats one value needs a few
  // bytes in a file for any number of elements.
  int64_t max_constant_bytes = int64_t{2} << 30;
  // Bytes of the inferred shapes. A small node can have shapes of 254 dimensions.
  int64_t max_shape_bytes = int64_t{256} << 20;

  // ---- Limit of time ----

  // An import that is not finished at this time returns DEADLINE_EXCEEDED. Parsing ignores the
  // deadline.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Options of ImportGraphDef.
struct ImportGraphDefOptions {
  // If not empty, nodes are named "prefix/name", and their inputs must be nodes of the same
  // GraphDef. Without a prefix, inputs may also be nodes that the graph already has.
  std::string prefix;
  // Requires a kernel for every node's types and device.
  bool require_kernels = true;
  bool infer_shapes = true;
  // Accepts nodes whose op is not registered. These and all nodes that depend on them stay in the
  // GraphDef, but have no inputs and outputs in the graph, and cannot run (Node::is_resolved()).
  bool allow_missing_ops = false;
  GraphLimits limits;
  // Allows NaN in attributes. No op of TensorFlow needs it.
  bool allow_nan_attributes = false;
};

// Adds the nodes of `graph_def`, in its order, and fills in default attributes. On error, the graph
// is unchanged. Takes time linear in the size of `graph_def`. Errors:
//
//   NOT_FOUND          ops are not registered; the text names up to 50, with similar names
//   UNIMPLEMENTED      ops have no kernel for their types or device; the text names up to 50
//   INVALID_ARGUMENT   a name is invalid or duplicate; an attribute is wrong, missing or unknown;
//                      inputs are wrong or form a cycle; shapes do not match; a node is colocated
//                      with a missing node; a function calls itself; `versions` of the
//                      GraphDef excludes this reader; a limit is exceeded
//   DEADLINE_EXCEEDED  GraphLimits::deadline has passed
//
// An import without a prefix into an empty graph also takes all other fields of the GraphDef:
// functions, versions, debug information and unknown fields. Other imports add the functions, and
// change the graph's versions so that only readers that can read both graphs are allowed.
absl::Status ImportGraphDef(const ImportGraphDefOptions& options, const GraphDef& graph_def,
                            Graph* graph);
// Overload that does not copy. On error `graph_def` is in an unspecified state.
absl::Status ImportGraphDef(const ImportGraphDefOptions& options, GraphDef&& graph_def,
                            Graph* graph);

// Reads a file. The file is text if its name ends in ".pbtxt" and binary if the name ends in ".pb";
// otherwise the content decides. Returns NOT_FOUND or PERMISSION_DENIED, or INVALID_ARGUMENT with
// the position and the fault (truncated, not UTF-8, duplicate map key, limit exceeded). The error
// text names the file. Only ImportGraphDef checks the graph itself.
absl::StatusOr<GraphDef> ReadGraphDef(const std::string& path, const GraphLimits& limits = {});
// Parse the content of a file. Return the errors of ReadGraphDef() except NOT_FOUND and
// PERMISSION_DENIED.
absl::StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes, const GraphLimits& limits = {});
absl::StatusOr<GraphDef> ParseGraphDefText(absl::string_view text, const GraphLimits& limits = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_IMPORT_H_
