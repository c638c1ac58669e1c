// EditBase and EditedGraph: a graph file, and the graph that the page made from it.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_

#include <google/protobuf/struct.pb.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/saved_model.pb.h"

namespace gradflow::tools {

// The edited file. Immutable.
struct EditBase {
  GraphDef def;
  // The graph without its nodes.
  GraphDef rest;
  // The content of the file; empty for a new graph.
  std::string bytes;
  // If the file is a SavedModel: the model without the nodes of one graph, and the number of this
  // graph.
  std::optional<SavedModel> model;
  int meta_graph = 0;
  bool is_text = false;
};

// Returns an empty graph with the versions of this library.
EditBase NewBase();
// Reads the bytes of a file. NOT_FOUND if the file does not exist. Errors name the file.
absl::StatusOr<std::string> ReadEditedFile(const std::string& path, const GraphLimits& limits);
// Parses the content of a file: text if its name ends in ".pbtxt", otherwise binary.
absl::StatusOr<EditBase> ParseBase(std::string bytes, bool is_text, const GraphLimits& limits);

// Parses the file of a SavedModel in `folder`, and selects a graph by its tags (ChooseTags).
absl::StatusOr<EditBase> ParseModelBase(const std::string& folder, const std::string& tag,
                                        std::string bytes, bool is_text, const GraphLimits& limits);

// A function of an edited graph.
struct EditedFunction {
  // The index in the base; -1 for a new function.
  int base = 0;
  bool is_untouched = false;
  // For each node, the index of the same unchanged node in the function of the base; -1 for other
  // nodes.
  std::vector<int> origin;
};

struct EditedGraph {
  // The complete graph. Parts that the page does not edit are copied from the base.
  GraphDef def;
  // For each node, the index of the same unchanged node in the base; -1 for other nodes.
  std::vector<int> origin;
  // In the order of def.library().
  std::vector<EditedFunction> functions;
};

// Returns a member of an object; a null value if it does not exist.
const google::protobuf::Value& Member(const google::protobuf::Value& value, const char* name);

// Makes the graph of a request of a page (web/src/edit/api.ts). The items of its list "nodes" are
//
//   3                             node 3 of the base, unchanged
//   {"t": TEXT}                   a node in text format
//   {"t": TEXT, "b": 3, "k": [NAME, ...]}
//                                 node 3 of the base with changes: attributes NAME, debug
//                                 information and unknown fields are copied from the base
//
// If there is no list "functions", all functions are unchanged. The items of the list are
//
//   2                             function 2 of the base, unchanged
//   {"f": 2, "h": TEXT, "nodes": [...]}
//                                 function 2 of the base with other nodes and, if "h" is given,
//                                 with the other fields of TEXT, in text format
//   {"h": TEXT, "nodes": [...]}   a new function
//
// Checks the lists like the text of a file. The caller must check the graph with ImportGraphDef.
absl::StatusOr<EditedGraph> MakeEditedGraph(const EditBase& base,
                                            const google::protobuf::Value& request,
                                            const GraphLimits& limits);

// Returns the content of a file with the graph, as text or binary. If the base has the same format,
// unchanged nodes and functions, and all other fields of the graph, keep the bytes of the base. The
// unchanged nodes and fields of a changed function also keep their bytes.
absl::StatusOr<std::string> EditedFile(const EditBase& base, const EditedGraph& graph, bool is_text,
                                       const GraphLimits& limits);
// Returns the SavedModel of the base with another graph.
SavedModel EditedModel(const EditBase& base, const GraphDef& graph);
// Returns the content of the file of EditedModel().
absl::StatusOr<std::string> EditedModelFile(const EditBase& base, const GraphDef& graph);

// Returns a node for the page: name, op, inputs, device and attributes as text. An attribute with
// more bytes is null.
std::string EditNodeJson(const NodeDef& node, size_t max_attr_bytes);
// Returns a function for the page: the nodes, and all other fields as text.
std::string EditFunctionJson(const FunctionDef& function, size_t max_attr_bytes);

// The server does not send attributes with more bytes than this to the page.
inline constexpr size_t kMaxSentAttrBytes = 4096;

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_GRAPH_H_
