// The bodies of functions as graphs.
#ifndef GRADFLOW_TOOLS_VIEW_FUNCTION_BODY_H_
#define GRADFLOW_TOOLS_VIEW_FUNCTION_BODY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tools/view/analyzed_graph.h"

namespace gradflow::tools {

// Finds the definition of an op or function; null if there is none.
using FindOpDef = std::function<const OpDef*(const std::string& op)>;

// The names that inputs in the body of a function have. Borrows the function.
class FunctionNames {
 public:
  FunctionNames(const FunctionDef& function, FindOpDef find_op);

  // Resolves "argument", "node:output_argument:index" or "^node" to a place among the arguments
  // and, after these, the nodes; -1 if there is none.
  InputSource Resolve(absl::string_view input) const;

 private:
  // A place in the body of a function.
  struct Place {
    int index;
    // Null for an argument.
    const NodeDef* def;
  };
  const FindOpDef find_op_;
  absl::flat_hash_map<absl::string_view, Place> places_;
};

// Returns the names of the control outputs: those of the signature, then others that have a node.
std::vector<std::string> ControlOutputs(const FunctionDef& function);

// Returns a graph that computes what the body does: a placeholder for each argument, the nodes, an
// identity for each result, and a NoOp for each control output, in this order. Names of the last
// two may differ from those of the function.
GraphDef FunctionGraph(const FunctionDef& function, const FindOpDef& find_op);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_FUNCTION_BODY_H_
