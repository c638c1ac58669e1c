// Identity and the other ops that return their inputs, such as StopGradient.
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::identity {
namespace {

absl::Status UnchangedShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

// Forwards the inputs, sharing their memory.
absl::Status ForwardInputs(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) ctx.set_output(i, ctx.input(i));
  return absl::OkStatus();
}

// Rejects resources, because the value of a resource may change.
absl::Status ComputeGuaranteeConst(KernelContext& ctx) {
  if (ctx.input(0).dtype() == DT_RESOURCE) {
    return errors::InvalidArgument("input must not be a resource, whose value is not constant");
  }
  return ForwardInputs(ctx);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Identity")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input without copying it.

input: Any tensor.
output: The same tensor.
T: The type of the tensor.)");
  registry.Op("RefIdentity")
      .Group("array_ops")
      .Input("input: Ref(T)")
      .Output("output: Ref(T)")
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input, a variable.

input: A variable.
output: The same variable.
T: The type of the variable.)");
  registry.Op("IdentityN")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type) >= 1")
      .Shape(UnchangedShapes)
      .Doc(R"(Returns its inputs without copying them, once all are available.

input: Any tensors.
output: The same tensors.
T: The types of the tensors.)");
  registry.Op("StopGradient")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input, which gradients treat as a constant.

input: Any tensor.
output: The same tensor.
T: The type of the tensor.)");
  registry.Op("PreventGradient")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("message: string = ''")
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input. Taking a gradient through this op is an error.

input: Any tensor.
output: The same tensor.
T: The type of the tensor.
message: The message of that error.)");
  registry.Op("Snapshot")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input, which later updates of variables do not change.

input: Any tensor.
output: The same tensor.
T: The type of the tensor.)");
  registry.Op("GuaranteeConst")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Stateful()
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input, which the caller guarantees to be constant.

input: Any tensor.
output: The same tensor.
T: The type of the tensor.)");
  for (const char* op :
       {"Identity", "RefIdentity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot"}) {
    registry.Kernel(op, MakeFunctionKernel<ForwardInputs, /*Cheap=*/true>)
        .Types("T", AllDataTypes());
  }
  registry.Kernel("GuaranteeConst", MakeFunctionKernel<ComputeGuaranteeConst, /*Cheap=*/true>)
      .Types("T", AllDataTypes());
}

}  // namespace gradflow::identity
