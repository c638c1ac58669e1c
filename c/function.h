// TF_Function, and functions made from operations of a graph.
#ifndef GRADFLOW_C_FUNCTION_H_
#define GRADFLOW_C_FUNCTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/c/graph.h"
#include "gradflow/proto/function.pb.h"
#include "tensorflow/c/c_api.h"

struct TF_Function {
  gradflow::FunctionDef def;
  // The functions of the graph that it was made from.
  std::vector<gradflow::FunctionDef> called;
};

namespace gradflow::capi {

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

// Adds functions to a graph, and makes `gradient` the gradient of `function` unless it is null.
// REQUIRES: a GraphChange of the graph
absl::Status AddFunctionToGraph(const FunctionDef& function, const FunctionDef* gradient,
                                Graph* graph);

// Adds the functions that `function` calls, directly or not, and that the graph does not have.
// REQUIRES: a GraphChange of the graph
absl::Status AddCalledFunctions(const TF_Function& function, Graph* graph);

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_FUNCTION_H_
