#include "gradflow/graph/while_loop.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/while_context.h"

namespace gradflow::ops {
namespace {

using gradflow::internal::GraphImpl;

// The messages of these errors are the messages of TensorFlow.
absl::Status CheckOutput(const Output& output) {
  const Node* const node = output.node();
  if (node == nullptr) return errors::InvalidArgument("Node is null");
  if (output.index() >= 0 && output.index() < node->num_outputs()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "Node '", node->name(), "' (type: '", node->type_string(),
      "', num of outputs: ", node->num_outputs(), ") does not have output ", output.index()));
}

// Adds the op to each of `inputs`.
template <typename F>
std::vector<Output> AddToEach(const Scope& scope, const char* op, const std::vector<Output>& inputs,
                              F&& add_inputs) {
  std::vector<Output> outputs;
  for (const Output& input : inputs) {
    OpBuilder builder(scope, op);
    add_inputs(input, &builder);
    outputs.emplace_back(builder.Finish(), 0);
  }
  return outputs;
}

std::vector<Output> AddToEach(const Scope& scope, const char* op,
                              const std::vector<Output>& inputs) {
  return AddToEach(scope, op, inputs,
                   [](const Output& input, OpBuilder* builder) { builder->Input(input); });
}

std::vector<Node*> NodesOf(const std::vector<Output>& outputs) {
  std::vector<Node*> nodes;
  for (const Output& output : outputs) nodes.push_back(output.node());
  return nodes;
}

absl::Status Build(const Scope& scope, const std::vector<Output>& inputs,
                   const CondGraphBuilderFn& cond, const BodyGraphBuilderFn& body,
                   const std::string& frame_name, OutputList* outputs, bool create_while_ctx,
                   Output* cond_output) {
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  if (inputs.empty()) {
    return errors::InvalidArgument("BuildWhileLoop: 'inputs' must not be empty");
  }
  if (!outputs->empty()) {
    return errors::InvalidArgument("BuildWhileLoop: 'outputs' must be empty");
  }
  for (const Output& input : inputs) GRADFLOW_RETURN_IF_ERROR(CheckOutput(input));

  const std::vector<Output> enters =
      AddToEach(scope, "Enter", inputs, [&](const Output& input, OpBuilder* builder) {
        builder->Input(input).Attr("frame_name", frame_name);
      });
  // The second input becomes a NextIteration below.
  const std::vector<Output> merges =
      AddToEach(scope, "Merge", enters, [](const Output& enter, OpBuilder* builder) {
        builder->Input(InputList(OutputList{enter, enter}));
      });
  GRADFLOW_RETURN_IF_ERROR(scope.status());

  Output condition;
  GRADFLOW_RETURN_IF_ERROR(
      cond(scope.NewSubScope("cond").WithControlDependencies(merges[0]), merges, &condition));
  GRADFLOW_RETURN_IF_ERROR(CheckOutput(condition));
  if (condition.type() != DT_BOOL) {
    return errors::InvalidArgument(
        "BuildWhileLoop: 'cond' argument must return a boolean output, got ",
        DataTypeString(condition.type()));
  }
  const Output loop_cond(OpBuilder(scope, "LoopCond").Input(condition).Finish(), 0);
  if (cond_output != nullptr) *cond_output = loop_cond;

  const std::vector<Output> switches = AddToEach(
      scope, "Switch", merges,
      [&](const Output& merge, OpBuilder* builder) { builder->Input(merge).Input(loop_cond); });
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  std::vector<Output> taken;
  for (const Output& output : switches) taken.emplace_back(output.op(), 1);
  const Scope body_scope = scope.NewSubScope("body");
  const std::vector<Output> variables = AddToEach(body_scope, "Identity", taken);
  GRADFLOW_RETURN_IF_ERROR(scope.status());

  std::vector<Output> results;
  GRADFLOW_RETURN_IF_ERROR(
      body(body_scope.WithControlDependencies(variables[0]), variables, &results));
  if (results.size() != inputs.size()) {
    return errors::InvalidArgument("BuildWhileLoop: 'body' argument expected to return ",
                                   inputs.size(), " output(s), got ", results.size());
  }
  for (const Output& result : results) GRADFLOW_RETURN_IF_ERROR(CheckOutput(result));
  const std::vector<Output> nexts = AddToEach(scope, "NextIteration", results);
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  GraphImpl& graph = GraphImpl::Of(scope.graph());
  for (size_t i = 0; i < inputs.size(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(graph.SetBackEdge(*merges[i].node(), 1, *nexts[i].node()));
  }
  std::vector<Output> exits = AddToEach(scope, "Exit", switches);
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  if (create_while_ctx) {
    graph.AddWhileContext(std::make_unique<WhileContext>(
        frame_name, NodesOf(enters), NodesOf(exits), condition, variables, results));
  }
  *outputs = std::move(exits);
  return absl::OkStatus();
}

}  // namespace

absl::Status BuildWhileLoop(const Scope& scope, const std::vector<Output>& inputs,
                            const CondGraphBuilderFn& cond, const BodyGraphBuilderFn& body,
                            const std::string& frame_name, OutputList* outputs,
                            bool create_while_ctx, Output* cond_output) {
  GRADFLOW_RETURN_IF_ERROR(gradflow::internal::CheckOut(outputs, "BuildWhileLoop", "outputs"));
  return CallSafely([&] {
    return Build(scope, inputs, cond, body, frame_name, outputs, create_while_ctx, cond_output);
  });
}

}  // namespace gradflow::ops
