// PartitionedCall, StatefulPartitionedCall and SymbolicGradient.
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::call {
namespace {

void RegisterCall(Registry& registry, const char* name, const char* summary, bool is_stateful) {
  Registry::OpRegistrar op = registry.Op(name);
  op.Group("functional_ops")
      .Input("args: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("f: func")
      .Attr("config: string = ''")
      .Attr("config_proto: string = ''")
      .Attr("executor_type: string = ''")
      .Functional(FunctionalOp::kCall)
      .Shape(OutputShapesAttrShape)
      .Doc(absl::StrCat(summary, R"(

args: The arguments.
output: The results.
Tin: The types of the arguments.
Tout: The types of the results.
f: The function.
config: Not used.
config_proto: Not used.
executor_type: Not used.)"));
  if (is_stateful) op.Stateful();
}

absl::Status NoGradient(KernelContext&) {
  return errors::Unimplemented(
      "gradflow does not compute gradients while a graph runs; call ExpandSymbolicGradients before "
      "the session is created");
}

}  // namespace

void Register(Registry& registry) {
  RegisterCall(registry, "PartitionedCall", "Calls a function that has no side effects.", false);
  RegisterCall(registry, "StatefulPartitionedCall", "Calls a function that may have side effects.",
               true);

  registry.Op("SymbolicGradient")
      .Group("functional_ops")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 1")
      .Attr("Tout: list(type) >= 1")
      .Attr("f: func")
      .Shape(UnknownShape)
      .Doc(R"(Computes the gradient of a function.

A run that reaches the op fails. ExpandSymbolicGradients replaces the op by calls of functions.

input: The arguments of the function, and the gradients of its results.
output: The gradients of the arguments.
Tin: The types of `input`.
Tout: The types of `output`.
f: The function.)");
  registry.Kernel("SymbolicGradient", MakeFunctionKernel<NoGradient>);
}

}  // namespace gradflow::call
