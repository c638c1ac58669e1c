#include "gradflow/graph/function_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/function.pb.h"

namespace gradflow {

using internal::Quoted;

FunctionBuilder::FunctionBuilder(absl::string_view name, const Registry& registry)
    : name_(name), scope_(Scope::NewRootScope(registry)) {}

FunctionBuilder::FunctionBuilder(absl::string_view name, const Scope& caller)
    : name_(name), scope_(internal::NewScopeOfFunction(caller)) {}

bool FunctionBuilder::CheckOwn(absl::string_view what, const Node* node) const {
  if (!scope_.ok()) return false;
  if (node != nullptr && &node->graph() == scope_.graph()) return true;
  scope_.UpdateStatus(errors::InvalidArgument(
      "function ", Quoted(name_), ": ", what,
      node == nullptr ? " is empty" : " is of another graph: it must be an argument"));
  return false;
}

Output FunctionBuilder::Arg(absl::string_view name, DataType dtype) {
  const Operation arg = OpBuilder(scope_.WithOpName(name), "_Arg")
                            .Attr("T", dtype)
                            .Attr("index", static_cast<int>(args_.size()))
                            .Finish();
  if (!scope_.ok()) return Output();
  if (arg.node()->name() != name) {
    scope_.UpdateStatus(errors::InvalidArgument("function ", Quoted(name_), ": argument ",
                                                Quoted(name), ": another node has the same name"));
    return Output();
  }
  args_.emplace_back(name, arg.node());
  return Output(arg, 0);
}

void FunctionBuilder::Result(absl::string_view name, const Output& value) {
  if (!CheckOwn(absl::StrCat("result ", Quoted(name)), value.node())) return;
  results_.emplace_back(name, value);
}

void FunctionBuilder::ControlResult(const Operation& op) {
  if (!CheckOwn("a control result", op.node())) return;
  const auto known = std::find(control_results_.begin(), control_results_.end(), op.node());
  if (known == control_results_.end()) control_results_.push_back(op.node());
}

absl::StatusOr<std::string> FunctionBuilder::NameOf(const Node& node, int output) const {
  // An argument has the name of its node.
  if (node.op().functional() == FunctionalOp::kArg) return node.name();
  NameRangeMap ranges;
  GRADFLOW_RETURN_IF_ERROR(NameRangesForNode(node.def(), node.op_def(), nullptr, &ranges));
  for (const auto& [name, range] : ranges) {
    if (output < range.first || output >= range.second) continue;
    return absl::StrCat(node.name(), ":", name, ":", output - range.first);
  }
  return errors::InvalidArgument("node ", Quoted(node.name()), " has no output ", output);
}

absl::StatusOr<FunctionDef> FunctionBuilder::Build() const {
  FunctionDef function;
  const auto build = [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    OpDef& signature = *function.mutable_signature();
    signature.set_name(name_);
    for (const auto& [name, node] : args_) {
      OpDef::ArgDef* const arg = signature.add_input_arg();
      arg->set_name(name);
      arg->set_type(node->output_type(0));
    }
    for (const auto& [name, value] : results_) {
      OpDef::ArgDef* const result = signature.add_output_arg();
      result->set_name(name);
      result->set_type(BaseType(value.type()));
      GRADFLOW_ASSIGN_OR_RETURN((*function.mutable_ret())[name],
                                NameOf(*value.node(), value.index()));
    }
    for (const Node* node : control_results_) {
      signature.add_control_output(node->name());
      (*function.mutable_control_ret())[node->name()] = node->name();
    }
    internal::HashSet<const Node*> args;
    for (const auto& [name, node] : args_) args.insert(node);
    const Graph& graph = *scope_.graph();
    for (int id = 0; id < graph.num_nodes(); ++id) {
      const Node& node = *graph.node(id);
      if (args.count(&node) > 0) continue;
      if (node.op_def().is_stateful()) signature.set_is_stateful(true);
      NodeDef& def = *function.add_node_def();
      def = node.def();
      def.clear_input();
      for (const auto& [source, output] : node.sources()) {
        if (output < 0) {
          def.add_input(absl::StrCat("^", source->name()));
        } else {
          GRADFLOW_ASSIGN_OR_RETURN(*def.add_input(), NameOf(*source, output));
        }
      }
    }
    absl::Status status = ValidateFunctionSignature(signature);
    if (status.ok() && name_.empty()) status = errors::InvalidArgument("it has no name");
    return errors::Prefix(absl::StrCat("function ", Quoted(name_), ": "), status);
  };
  GRADFLOW_RETURN_IF_ERROR(CallSafely(build));
  return function;
}

absl::Status FunctionBuilder::AddTo(const Scope& scope) const {
  GRADFLOW_ASSIGN_OR_RETURN(const FunctionDef function, Build());
  return scope.graph()->AddFunction(function);
}

}  // namespace gradflow
