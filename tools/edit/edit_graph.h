// EditBase and EditedGraph: a graph file, and what the page made of it.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_

#include <google/protobuf/struct.pb.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// The file that is edited. Immutable.
struct EditBase {
  GraphDef def;
  // The content of the file; empty for a new graph.
  std::string bytes;
  bool is_text = false;
  // Begin and end of each node in `bytes`, the tag and length of a binary one included. Empty if
  // other fields are between the nodes, so that the file cannot be changed in place.
  std::vector<std::pair<size_t, size_t>> nodes;
};

// Returns an empty graph with the versions of this library.
EditBase NewBase();
// Reads the bytes of a file. NOT_FOUND if it does not exist; errors name it.
absl::StatusOr<std::string> ReadEditedFile(const std::string& path, const GraphLimits& limits);
// Parses the content of a file, which is text if its name ends in ".pbtxt" and binary otherwise.
absl::StatusOr<EditBase> ParseBase(std::string bytes, bool is_text, const GraphLimits& limits);

struct EditedGraph {
  // All of the graph. What the page does not edit is that of the base.
  GraphDef def;
  // For each node, the one of the base that it is, untouched; -1 for others.
  std::vector<int> origin;
};

// Returns a member of an object; null, as a value, if there is none.
const google::protobuf::Value& Member(const google::protobuf::Value& value, const char* name);

// Makes the graph of a list that a page sends (web/src/edit/api.ts). Its items are
//
//   3                             node 3 of the base, untouched
//   {"t": TEXT}                   a node in text format
//   {"t": TEXT, "b": 3, "k": [NAME, ...]}
//                                 node 3 of the base with changes: attributes NAME, and fields that
//                                 are unknown here, are those of the base
//
// Checks the list as text of a file is checked; ImportGraphDef must check the graph.
absl::StatusOr<EditedGraph> MakeEditedGraph(const EditBase& base,
                                            const google::protobuf::Value& nodes,
                                            const GraphLimits& limits);

// Returns the content of a file with the graph, as text or binary. Nodes that are untouched, and
// all that is not nodes, have the bytes of the base, if it has the same format.
absl::StatusOr<std::string> EditedFile(const EditBase& base, const EditedGraph& graph, bool is_text,
                                       const GraphLimits& limits);

// Returns a node for the page: name, op, inputs, device and attributes as text. An attribute of
// more bytes is null.
std::string EditNodeJson(const NodeDef& node, size_t max_attr_bytes);

// Attributes of more bytes stay with the server.
inline constexpr size_t kMaxSentAttrBytes = 4096;

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_
