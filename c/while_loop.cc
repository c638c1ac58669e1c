// While loops, as nodes of the op While: the condition and the body become functions, so that
// TF_AddGradients() differentiates the loop.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gradflow/c/function.h"
#include "gradflow/c/graph.h"
#include "gradflow/c/status.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::capi {
namespace {

// Sessions may outlive the graphs.
struct UnrefDeleter {
  void operator()(TF_Graph* graph) const { UnrefGraph(graph); }
};
using GraphPtr = std::unique_ptr<TF_Graph, UnrefDeleter>;

// The members of TF_WhileParams, which are const there.
struct Loop {
  GraphPtr cond_graph;
  std::unique_ptr<TF_Output[]> cond_inputs;
  GraphPtr body_graph;
  std::unique_ptr<TF_Output[]> body_inputs;
  std::unique_ptr<TF_Output[]> body_outputs;
};

// Makes a graph with a placeholder for each input.
absl::Status MakeGraph(TF_Graph* parent, const TF_Output* inputs, int count, const char* prefix,
                       GraphPtr* graph, std::unique_ptr<TF_Output[]>* outputs) {
  graph->reset(new TF_Graph);
  (*graph)->parent = parent;
  (*graph)->parent_inputs.assign(inputs, inputs + count);
  *outputs = std::make_unique<TF_Output[]>(count);
  for (int i = 0; i < count; ++i) {
    Node* node;
    GRADFLOW_RETURN_IF_ERROR(
        NodeBuilder(absl::StrCat(prefix, i), "Placeholder")
            .Attr("dtype", BaseType(FromC(inputs[i].oper)->output_type(inputs[i].index)))
            .Finalize(&(*graph)->graph, &node));
    (*outputs)[i] = {ToC(node), 0};
  }
  return absl::OkStatus();
}

// Takes ownership of the objects that the parameters point to.
Loop TakeLoop(const TF_WhileParams* params) {
  Loop loop;
  loop.cond_graph.reset(params->cond_graph);
  loop.cond_inputs.reset(const_cast<TF_Output*>(params->cond_inputs));
  loop.body_graph.reset(params->body_graph);
  loop.body_inputs.reset(const_cast<TF_Output*>(params->body_inputs));
  loop.body_outputs.reset(params->body_outputs);
  return loop;
}

// Returns a name that neither a function nor an op has.
std::string FunctionName(const Graph& graph, const char* loop, const char* part) {
  std::string base = absl::StrCat(loop, "_", part);
  for (char& c : base) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  std::string name = base;
  for (int i = 1;
       graph.functions().Find(name) != nullptr || graph.registry().FindOp(name) != nullptr; ++i) {
    name = absl::StrCat(base, "_", i);
  }
  return name;
}

// Returns the function of a graph, with a name that is new in the parent.
absl::StatusOr<FunctionDef> MakePart(const TF_WhileParams& params, const char* part,
                                     TF_Graph* graph, const TF_Output* inputs,
                                     const TF_Output* outputs, int num_outputs,
                                     const Graph& parent) {
  const std::string name = FunctionName(parent, params.name, part);
  FunctionParts parts;
  parts.name = name.c_str();
  parts.all_operations = true;
  parts.inputs = inputs;
  parts.num_inputs = params.ninputs;
  parts.outputs = outputs;
  parts.num_outputs = num_outputs;
  const MutexLock lock(&graph->mutex);
  return MakeFunction(graph->graph, parts);
}

// Returns the functions of a graph.
std::vector<FunctionDef> FunctionsOf(TF_Graph* graph) {
  const MutexLock lock(&graph->mutex);
  const auto& functions = graph->graph.def().library().function();
  return std::vector<FunctionDef>(functions.begin(), functions.end());
}

// Checks an output of the condition or body. Errors have TensorFlow's texts, which tests compare.
absl::Status CheckResult(const TF_Graph& graph, const TF_Output& output) {
  const Node& node = *FromC(output.oper);
  if (&node.graph() != &graph.graph) {
    return errors::InvalidArgument("Requested return tensor '", node.name(), ":", output.index,
                                   "' not found in graph def");
  }
  if (output.index < 0 || output.index >= node.num_outputs()) {
    return errors::InvalidArgument("Invalid return output ", output.index, " of node '",
                                   node.name(), "', which has ", node.num_outputs(), " output(s)");
  }
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT if the program has changed what TF_NewWhile() has made.
absl::Status CheckUnchanged(const TF_WhileParams& params) {
  const TF_Graph* const cond = params.cond_graph;
  const TF_Graph* const body = params.body_graph;
  const bool unchanged = cond != nullptr && body != nullptr && cond->parent != nullptr &&
                         cond->parent == body->parent && params.cond_inputs != nullptr &&
                         params.body_inputs != nullptr && params.body_outputs != nullptr &&
                         params.ninputs == static_cast<int>(cond->parent_inputs.size());
  if (unchanged) return absl::OkStatus();
  return errors::InvalidArgument(
      "TF_WhileParams has members that TF_NewWhile() did not set: the graphs, the inputs and "
      "ninputs must not change");
}

absl::Status CheckParams(const TF_WhileParams& params) {
  if (params.name == nullptr) {
    return errors::InvalidArgument("TF_WhileParams `name` field is null");
  }
  if (params.cond_output.oper == nullptr) {
    return errors::InvalidArgument("TF_WhileParams `cond_output` field isn't set");
  }
  GRADFLOW_RETURN_IF_ERROR(CheckResult(*params.cond_graph, params.cond_output));
  const DataType cond_type = FromC(params.cond_output.oper)->output_type(params.cond_output.index);
  if (cond_type != DT_BOOL) {
    return errors::InvalidArgument(
        "BuildWhileLoop: 'cond' argument must return a boolean output, "
        "got ",
        DataTypeString(cond_type));
  }
  for (int i = 0; i < params.ninputs; ++i) {
    if (params.body_outputs[i].oper == nullptr) {
      return errors::InvalidArgument("TF_WhileParams `body_outputs[", i, "]` field isn't set");
    }
    GRADFLOW_RETURN_IF_ERROR(CheckResult(*params.body_graph, params.body_outputs[i]));
    const auto type_of = [](const TF_Output& output) {
      return BaseType(FromC(output.oper)->output_type(output.index));
    };
    const DataType found = type_of(params.body_outputs[i]);
    const DataType expected = type_of(params.body_inputs[i]);
    if (found != expected) {
      return errors::InvalidArgument("TF_WhileParams `body_outputs[", i, "]` has type ",
                                     DataTypeString(found), ", expected ",
                                     DataTypeString(expected));
    }
  }
  return absl::OkStatus();
}

absl::Status Finish(const TF_WhileParams& params, TF_Output* outputs) {
  GRADFLOW_RETURN_IF_ERROR(CheckParams(params));
  TF_Graph* const parent = params.cond_graph->parent;
  const std::vector<Output> inputs =
      OutputsFromC(params.cond_graph->parent_inputs.data(), params.ninputs);
  const GraphChange change(parent);
  GRADFLOW_ASSIGN_OR_RETURN(const FunctionDef cond_def,
                            MakePart(params, "cond", params.cond_graph, params.cond_inputs,
                                     &params.cond_output, 1, parent->graph));
  GRADFLOW_ASSIGN_OR_RETURN(const FunctionDef body_def,
                            MakePart(params, "body", params.body_graph, params.body_inputs,
                                     params.body_outputs, params.ninputs, parent->graph));
  const std::vector<FunctionDef> cond_functions = FunctionsOf(params.cond_graph);
  const std::vector<FunctionDef> body_functions = FunctionsOf(params.body_graph);
  std::vector<const FunctionDef*> functions;
  for (const FunctionDef& function : cond_functions) functions.push_back(&function);
  functions.push_back(&cond_def);
  for (const FunctionDef& function : body_functions) functions.push_back(&function);
  functions.push_back(&body_def);
  const int num_functions = parent->graph.def().library().function_size();
  GRADFLOW_RETURN_IF_ERROR(AddFunctionsToGraph(functions, &parent->graph));
  absl::Cleanup remove_functions = [&] { RemoveLastFunctions(num_functions, &parent->graph); };
  NameAttrList cond;
  cond.set_name(cond_def.signature().name());
  NameAttrList body;
  body.set_name(body_def.signature().name());
  const std::vector<NodeOut> sources(inputs.begin(), inputs.end());
  Node* node;
  // As in TensorFlow, several loops may be given one name.
  const bool is_used = parent->graph.FindNode(params.name) != nullptr;
  const std::string name = is_used ? parent->graph.NewName(params.name) : params.name;
  GRADFLOW_RETURN_IF_ERROR(NodeBuilder(name, "While")
                               .Input(sources)
                               .Attr("cond", cond)
                               .Attr("body", body)
                               .Finalize(&parent->graph, &node));
  std::move(remove_functions).Cancel();
  for (int i = 0; i < params.ninputs; ++i) outputs[i] = {ToC(node), i};
  return absl::OkStatus();
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::Call;

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status) {
  gradflow::capi::Loop loop;
  const bool ok = Call(status, [&]() -> absl::Status {
    if (ninputs <= 0) {
      return gradflow::errors::InvalidArgument("TF_NewWhile() must be passed at least one input");
    }
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::CheckOutputs(g->graph, inputs, ninputs, "inputs"));
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::MakeGraph(g, inputs, ninputs, "cond_input",
                                                       &loop.cond_graph, &loop.cond_inputs));
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::MakeGraph(g, inputs, ninputs, "body_input",
                                                       &loop.body_graph, &loop.body_inputs));
    loop.body_outputs = std::make_unique<TF_Output[]>(ninputs);
    for (int i = 0; i < ninputs; ++i) loop.body_outputs[i] = {nullptr, -1};
    return absl::OkStatus();
  });
  if (!ok) return {0, nullptr, nullptr, {nullptr, 0}, nullptr, nullptr, nullptr, nullptr};
  return {ninputs,
          loop.cond_graph.release(),
          loop.cond_inputs.release(),
          {nullptr, -1},
          loop.body_graph.release(),
          loop.body_inputs.release(),
          loop.body_outputs.release(),
          nullptr};
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  // As in TensorFlow, changed parameters are left to the program.
  if (!Call(status, [&] { return gradflow::capi::CheckUnchanged(*params); })) return;
  Call(status, [&] { return gradflow::capi::Finish(*params, outputs); });
  gradflow::capi::TakeLoop(params);
}

void TF_AbortWhile(const TF_WhileParams* params) { gradflow::capi::TakeLoop(params); }
