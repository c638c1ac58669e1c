// BuildWhileLoop: adds a loop of version 1 control flow (Enter, Merge, Switch, NextIteration,
// Exit).
//
//   // while (i < 10) i += 1;
//   std::vector<Output> results;
//   GRADFLOW_RETURN_IF_ERROR(ops::BuildWhileLoop(
//       scope, {i},
//       [](const Scope& s, const std::vector<Output>& variables, Output* output) {
//         *output = ops::Less(s, variables[0], 10);
//         return s.status();
//       },
//       [](const Scope& s, const std::vector<Output>& variables, std::vector<Output>* outputs) {
//         outputs->push_back(ops::Add(s, variables[0], 1));
//         return s.status();
//       },
//       "loop", &results));
#ifndef GRADFLOW_GRAPH_WHILE_LOOP_H_
#define GRADFLOW_GRAPH_WHILE_LOOP_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow::ops {

// Adds the condition of a loop, a bool scalar, and stores it in *output. `inputs` are the
// variables.
using CondGraphBuilderFn = std::function<absl::Status(
    const Scope& scope, const std::vector<Output>& inputs, Output* output)>;
// Adds the body of a loop, and appends the next value of each variable to *outputs.
using BodyGraphBuilderFn = std::function<absl::Status(
    const Scope& scope, const std::vector<Output>& inputs, std::vector<Output>* outputs)>;

// Adds a loop whose variables begin with the values `inputs`, and stores their last values, the
// outputs of Exit nodes, in *outputs. Nodes that `cond` and `body` add without inputs, such as
// constants, belong to the loop. Their inputs must come from `inputs` of the builder or from the
// loop, or pass an Enter node with is_constant=true and the same `frame_name`. This name must be
// unique in the graph.
//
// If `create_while_ctx`, the Exit nodes have a WhileContext (Node::while_ctx()). Stores the output
// of the LoopCond in *cond_output if it is not null.
//
// Returns INVALID_ARGUMENT if `inputs` is empty, if *outputs is not empty, or if a builder returns
// the wrong number or type of outputs, OUT_OF_RANGE if a node lacks the returned output, and the
// errors of the builders. After an error, a part of the loop may be in the graph.
absl::Status BuildWhileLoop(const Scope& scope, const std::vector<Output>& inputs,
                            const CondGraphBuilderFn& cond, const BodyGraphBuilderFn& body,
                            const std::string& frame_name, OutputList* outputs,
                            bool create_while_ctx = true, Output* cond_output = nullptr);

}  // namespace gradflow::ops
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_WHILE_LOOP_H_
