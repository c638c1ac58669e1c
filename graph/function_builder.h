// FunctionBuilder: builds a function that graphs can call. Ops are added through scope().
//
//   Scope root = Scope::NewRootScope();
//   FunctionBuilder square("square");
//   Output x = square.Arg("x", DT_FLOAT);
//   square.Result("y", ops::Mul(square.scope(), x, x));
//   absl::Status status = square.AddTo(root);
//
//   NameAttrList f;
//   f.set_name("square");
//   Output nine = ops::PartitionedCall(root, {3.f}, {DT_FLOAT}, f)[0];
//
// The scope keeps the first error. Ops of the function can take only outputs of the function:
// values of the calling graph must be passed as arguments.
//
// Thread safety: used by one thread at a time.
#ifndef GRADFLOW_GRAPH_FUNCTION_BUILDER_H_
#define GRADFLOW_GRAPH_FUNCTION_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

class FunctionDef;

class FunctionBuilder {
 public:
  // Starts a function of this name. Borrows the registry.
  explicit FunctionBuilder(absl::string_view name, const Registry& registry = GlobalRegistry());
  // Starts a function with the registry and the functions of the graph of `caller`. Nodes may
  // call these functions by using a function's name as their op. Keeps that graph alive.
  FunctionBuilder(absl::string_view name, const Scope& caller);

  // The scope of the function's ops.
  const Scope& scope() const { return scope_; }
  // Adds an argument. Arguments are numbered in the order of the calls. The name must be an
  // identifier that no other argument or op has. Returns an empty output on error.
  Output Arg(absl::string_view name, DataType dtype);
  // Adds a result. The name must be an identifier that no other result has.
  void Result(absl::string_view name, const Output& value);
  // Makes each call run an op even if no result needs it. Stateful ops run in any case.
  void ControlResult(const Operation& op);

  // Returns the function, or the first error.
  absl::StatusOr<FunctionDef> Build() const;
  // Adds the function to a graph. Returns the first error of the builder, or the error of
  // Graph::AddFunction().
  absl::Status AddTo(const Scope& scope) const;

 private:
  // Returns false, and sets the status of the scope, if the node does not belong to the function.
  bool CheckOwn(absl::string_view what, const Node* node) const;
  // Returns the name of an output in the function: "x" or "node:y:0".
  absl::StatusOr<std::string> NameOf(const Node& node, int output) const;

  std::string name_;
  Scope scope_;
  // The names and nodes of the arguments, and the names and values of the results.
  std::vector<std::pair<std::string, const Node*>> args_;
  std::vector<std::pair<std::string, Output>> results_;
  std::vector<const Node*> control_results_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_FUNCTION_BUILDER_H_
