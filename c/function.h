// TF_Function, and functions made from operations of a graph.
#ifndef GRADFLOW_C_FUNCTION_H_
#define GRADFLOW_C_FUNCTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/c/graph.h"
#include "gradflow/proto/function.pb.h"
#include "tensorflow/c/c_api.h"

struct TF_Function {
  gradflow::FunctionDef def;
  // The functions of the graph that it was made from.
  std::vector<gradflow::FunctionDef> called;
};

namespace gradflow {

class NodeDef;

namespace capi {

// The parts of a graph that become a function. Borrows the arrays.
struct FunctionParts {
  const char* name = "";
  bool append_hash = false;
  // The operations, or all operations except the inputs.
  bool all_operations = false;
  std::vector<const Node*> operations;
  const TF_Output* inputs = nullptr;
  int num_inputs = 0;
  const TF_Output* outputs = nullptr;
  int num_outputs = 0;
  // Null for names made from the nodes.
  const char* const* output_names = nullptr;
  std::vector<const Node*> control_outputs;
  const char* const* control_output_names = nullptr;
  const char* description = nullptr;
};

// Returns the function. Returns INVALID_ARGUMENT if an operation of the function reads an output
// that is neither an input nor an output of another operation of the function.
absl::StatusOr<FunctionDef> MakeFunction(const Graph& graph, const FunctionParts& parts);

// Returns true if a node calls the function, or if an attribute names it.
bool CallsFunction(const NodeDef& node, absl::string_view function);

// Returns the functions that `function` calls, directly or not, and that the graph does not have,
// and then `function` itself.
std::vector<const FunctionDef*> WithCalledFunctions(const TF_Function& function,
                                                    const Graph& graph);

// Adds functions to a graph: all functions or, on error, none. `gradient` is the gradient of one of
// them, or null. A function may be given twice, or be in the graph already.
// REQUIRES: a GraphChange of the graph
absl::Status AddFunctionsToGraph(const std::vector<const FunctionDef*>& functions, Graph* graph,
                                 const GradientDef* gradient = nullptr);

// Removes all functions but the first `size`.
// REQUIRES: a GraphChange of the graph; no node and no remaining function calls them
void RemoveLastFunctions(int size, Graph* graph);

}  // namespace capi
}  // namespace gradflow

#endif  // GRADFLOW_C_FUNCTION_H_
