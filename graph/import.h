// From a GraphDef to a Graph, and from files to a GraphDef.
#ifndef GRADFLOW_GRAPH_IMPORT_H_
#define GRADFLOW_GRAPH_IMPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Graph;
class GraphDef;

// How large a GraphDef may be, so that one from a stranger takes no more time and memory than its
// reader wants to spend. What is larger is refused with INVALID_ARGUMENT, in words that name the
// limit. docs/trust.md says what is checked beside these.
struct GraphLimits {
  // ---- Of bytes and text, before messages are made of them ----

  // Of a file. Protobuf takes less than 2 GiB, whatever is said here.
  int64_t max_file_bytes = (int64_t{1} << 31) - 1;
  // How deep messages may be within each other: at most 100 are taken. A value of a node's
  // attribute is 3 deep.
  int max_depth = 100;
  // About what the messages of a file take in memory. An empty message has 2 bytes in a file, and
  // hundreds in memory.
  int64_t max_message_bytes = int64_t{8} << 30;

  // ---- Of a GraphDef, the nodes of its functions included ----

  int64_t max_nodes = 10'000'000;
  int64_t max_functions = 100'000;
  // Of a node, data and control inputs together.
  int64_t max_inputs = 1 << 20;
  int64_t max_attrs = 1000;
  // Outputs of all nodes that are elements of lists. A short attribute says how many a list has.
  int64_t max_list_outputs = 1 << 22;
  // Bytes of the name of a node, a function, an argument, a result, an attribute or a device.
  int64_t max_name_bytes = 10'000;
  // Elements of an attribute that is a list.
  int64_t max_list_length = 1 << 20;
  // Bytes of tensors that all attributes of the GraphDef make together. A constant that repeats one
  // value needs a few bytes in a file for any number of elements.
  int64_t max_constant_bytes = int64_t{8} << 30;
};

// How ImportGraphDef takes a graph in.
struct ImportGraphDefOptions {
  // Nodes are named "prefix/name". They then take inputs from each other only; without a prefix
  // they may take inputs from nodes that the graph has already.
  std::string prefix;
  // Whether every node must have a kernel, for its types and on its device.
  bool require_kernels = true;
  bool infer_shapes = true;
  GraphLimits limits;
  // Whether attributes may be NaN. No op of TensorFlow's has a use for one of its parameters that
  // is.
  bool allow_nan_attributes = false;
};

// Adds the nodes of `graph_def`, in its order, with default attributes filled in. Everything is
// checked before anything is added, in time linear in the graph:
//
//   NOT_FOUND         ops are not registered, or UNIMPLEMENTED, they have no kernel for their
//                     types or device: all of them in one message, with near names
//   INVALID_ARGUMENT  the first of: bad or duplicate names, wrong, missing or unknown attributes,
//                     wrong inputs, cycles, colocation with nodes that do not exist, versions
//                     that exclude this reader, functions that call themselves, what exceeds
//                     the limits, shapes that cannot be
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
// is. NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT for what is no GraphDef, with the place in
// the file and what is wrong there (cut off, no UTF-8, a key of a map given twice, beyond the
// limits); the text names the file. The graph is not checked: ImportGraphDef does that.
absl::StatusOr<GraphDef> ReadGraphDef(const std::string& path, const GraphLimits& limits = {});
// The same from the content of a file.
absl::StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes, const GraphLimits& limits = {});
absl::StatusOr<GraphDef> ParseGraphDefText(absl::string_view text, const GraphLimits& limits = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_IMPORT_H_
