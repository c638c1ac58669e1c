// Graph files that are changed in place.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_FILE_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_FILE_H_

#include <optional>
#include <string>

#include "tools/edit/edit_graph.h"

namespace gradflow::tools {

// Returns the content of the base's file, in its format, with the nodes and functions of the graph.
// Untouched parts keep their bytes. A comment between two nodes, or between two functions, belongs
// to the second one. Returns nothing if other fields are between nodes or between functions, or if
// this function cannot read the form of the text. The caller checks that the content has the nodes
// and functions of the graph.
std::optional<std::string> FileInPlace(const EditBase& base, const EditedGraph& graph);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_FILE_H_
