// ToBool.
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/truth.h"

namespace gradflow::to_bool {
namespace {

absl::Status ToBool(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const bool value, TruthOf(ctx.input(0)));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(), &output));
  output->scalar<bool>()() = value;
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ToBool")
      .Group("functional_ops")
      .Input("input: T")
      .Output("output: bool")
      .Attr("T: type")
      .Shape(ScalarShape)
      .Doc(R"(Converts a tensor to a truth value, as `If` and `While` do.

input: Any tensor. A scalar must be a real number, a bool or a string.
output: A scalar: false if the input is a scalar that is 0, false or an empty string, or if it is
  no scalar and has no elements. Otherwise true.
T: The type of `input`.)");
  registry.Kernel("ToBool", MakeFunctionKernel<ToBool, /*Cheap=*/true>);
}

}  // namespace gradflow::to_bool
