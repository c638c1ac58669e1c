// EditBase and EditedGraph: a graph file, and what the page made of it.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_

#include <google/protobuf/struct.pb.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// The file that is edited. Immutable.
struct EditBase {
  GraphDef def;
  // The graph without its nodes.
  GraphDef rest;
  // The content of the file; empty for a new graph.
  std::string bytes;
  bool is_text = false;
};

// Returns an empty graph with the versions of this library.
EditBase NewBase();
// Reads the bytes of a file. NOT_FOUND if it does not exist; errors name it.
absl::StatusOr<std::string> ReadEditedFile(const std::string& path, const GraphLimits& limits);
// Parses the content of a file, which is text if its name ends in ".pbtxt" and binary otherwise.
absl::StatusOr<EditBase> ParseBase(std::string bytes, bool is_text, const GraphLimits& limits);

// A function of an edited graph.
struct EditedFunction {
  // Its number in the base; -1 for a new function.
  int base = 0;
  bool is_untouched = false;
  // For each node, the one of the function of the base that it is, untouched; -1 for others.
  std::vector<int> origin;
};

struct EditedGraph {
  // All of the graph. What the page does not edit is that of the base.
  GraphDef def;
  // For each node, the one of the base that it is, untouched; -1 for others.
  std::vector<int> origin;
  // In the order of def.library().
  std::vector<EditedFunction> functions;
};

// Returns a member of an object; null, as a value, if there is none.
const google::protobuf::Value& Member(const google::protobuf::Value& value, const char* name);

// Makes the graph of a request of a page (web/src/edit/api.ts). The items of its list "nodes" are
//
//   3                             node 3 of the base, untouched
//   {"t": TEXT}                   a node in text format
//   {"t": TEXT, "b": 3, "k": [NAME, ...]}
//                                 node 3 of the base with changes: attributes NAME, and fields that
//                                 are unknown here, are those of the base
//
// and those of its list "functions", without which all are untouched,
//
//   2                             function 2 of the base, untouched
//   {"f": 2, "h": TEXT, "nodes": [...]}
//                                 function 2 of the base with other nodes and, if "h" is given,
//                                 with these other fields, in text format
//   {"h": TEXT, "nodes": [...]}   a new function
//
// Checks the lists as text of a file is checked; ImportGraphDef must check the graph.
absl::StatusOr<EditedGraph> MakeEditedGraph(const EditBase& base,
                                            const google::protobuf::Value& request,
                                            const GraphLimits& limits);

// Returns the content of a file with the graph, as text or binary. Nodes and functions that are
// untouched, and all that is not nodes or functions, have the bytes of the base, if it has the same
// format. So have the untouched nodes and fields of a function.
absl::StatusOr<std::string> EditedFile(const EditBase& base, const EditedGraph& graph, bool is_text,
                                       const GraphLimits& limits);

// Returns a node for the page: name, op, inputs, device and attributes as text. An attribute of
// more bytes is null.
std::string EditNodeJson(const NodeDef& node, size_t max_attr_bytes);
// Returns a function for the page: its fields but the nodes as text, and the nodes.
std::string EditFunctionJson(const FunctionDef& function, size_t max_attr_bytes);

// Attributes of more bytes stay with the server.
inline constexpr size_t kMaxSentAttrBytes = 4096;

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_
