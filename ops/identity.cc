#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

absl::Status UnchangedShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

// Outputs share the memory of the inputs.
absl::Status PassOn(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) ctx.set_output(i, ctx.input(i));
  return absl::OkStatus();
}

}  // namespace

void RegisterIdentity(Registry& registry) {
  registry.Op("Identity")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(R"(Gives its input, without copying it.

input: Any tensor.
output: The same tensor.
T: The type of the tensor.)");
  registry.Op("IdentityN")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type) >= 1")
      .Shape(UnchangedShapes)
      .Doc(R"(Gives its inputs, without copying them, once all of them are there.

input: Any tensors.
output: The same tensors.
T: The types of the tensors.)");
  registry.Op("StopGradient")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(R"(Gives its input, which counts as a constant when gradients are taken.

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
      .Doc(R"(Gives its input, through which no gradient can be taken: that is an error.

input: Any tensor.
output: The same tensor.
T: The type of the tensor.
message: The text of the error.)");
  for (const char* op : {"Identity", "IdentityN", "StopGradient", "PreventGradient"}) {
    registry.Kernel(op, MakeFunctionKernel<PassOn, /*Cheap=*/true>);
  }
}

}  // namespace gradflow
