// If, StatelessIf, Case and StatelessCase.
#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::branch {
namespace {

absl::Status BranchShape(ShapeContext& c) { return ListedShapes(c, "output_shapes"); }

absl::Status CaseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  return BranchShape(c);
}

void RegisterIf(Registry& registry, const char* name, const char* summary, bool is_stateful) {
  Registry::OpRegistrar op = registry.Op(name);
  op.Group("functional_ops")
      .Input("cond: Tcond")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tcond: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Attr("output_shapes: list(shape) = []")
      .Functional(FunctionalOp::kIf)
      .Shape(BranchShape)
      .Doc(absl::StrCat(summary, R"(

cond: Selects `then_branch` if it is true. A scalar number is true unless it is 0, a scalar string
  unless it is empty, and any other tensor unless it has no elements.
input: The arguments of the function.
output: The results of the function.
Tcond: The type of `cond`.
Tin: The types of the arguments of both functions.
Tout: The types of the results of both functions.
then_branch: The function to call if `cond` is true.
else_branch: The function to call otherwise.
output_shapes: The shapes of the results, or an empty list if they are not known.)"));
  if (is_stateful) op.Stateful();
}

void RegisterCase(Registry& registry, const char* name, const char* summary, bool is_stateful) {
  Registry::OpRegistrar op = registry.Op(name);
  op.Group("functional_ops")
      .Input("branch_index: int32")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("branches: list(func) >= 1")
      .Attr("output_shapes: list(shape) = []")
      .Functional(FunctionalOp::kCase)
      .Shape(CaseShape)
      .Doc(absl::StrCat(summary, R"(

branch_index: A scalar: the number of the function, from 0. Calls the last function if there is
  none of this number.
input: The arguments of the function.
output: The results of the function.
Tin: The types of the arguments of all functions.
Tout: The types of the results of all functions.
branches: The functions.
output_shapes: The shapes of the results, or an empty list if they are not known.)"));
  if (is_stateful) op.Stateful();
}

}  // namespace

void Register(Registry& registry) {
  RegisterIf(registry, "If", "Calls one of two functions.", true);
  RegisterIf(registry, "StatelessIf", "Calls one of two functions without side effects.", false);
  RegisterCase(registry, "Case", "Calls one of several functions.", true);
  RegisterCase(registry, "StatelessCase", "Calls one of several functions without side effects.",
               false);
}

}  // namespace gradflow::branch
