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

// Finds the definition of an op or function; null if it is unknown.
using FindOpDef = std::function<const OpDef*(const std::string& op)>;

// Resolves the names of inputs in the body of a function. Borrows the function.
class FunctionNames {
 public:
  FunctionNames(const FunctionDef& function, FindOpDef find_op);

  // Resolves "argument", "node:output_argument:index" or "^node" to an index. Arguments come first,
  // then nodes. The index is -1 for an unknown name.
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

// Returns the names of the control outputs: first the control outputs in the signature, then other
// control outputs with a node.
std::vector<std::string> ControlOutputs(const FunctionDef& function);

// Returns a graph with the computation of the body: a placeholder for each argument, the nodes, an
// identity for each result, and a NoOp for each control output, in this order. The names of
// identities and NoOps may differ from the names in the function.
GraphDef FunctionGraph(const FunctionDef& function, const FindOpDef& find_op);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_FUNCTION_BODY_H_
