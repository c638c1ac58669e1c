// BroadcastTo.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::broadcast_to {
namespace {

absl::Status BroadcastToShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(1));
  GRADFLOW_RETURN_IF_ERROR(CheckBroadcastsTo("input", c.input(0), shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status BroadcastTo(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(1, "shape"));
  absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
  if (!shape.ok()) return errors::Prefix("shape: ", shape.status());
  const TensorShape& input = ctx.input(0).shape();
  GRADFLOW_RETURN_IF_ERROR(CheckBroadcastsTo("input", input, *shape));
  return OutputStrided(ctx, 0, *shape, dims, 0, {0, BroadcastStrides(input.dim_sizes(), dims)});
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("BroadcastTo")
      .Group("array_ops")
      .Input("input: T")
      .Input("shape: Tidx")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(BroadcastToShape)
      .Doc(R"(Broadcasts a tensor to a shape, as NumPy does.

Shapes are aligned at the last dimension. Dimensions of size 1, and dimensions that `input` does not
have, are repeated.

input: The tensor.
shape: A vector: the shape of the result.
output: The broadcast tensor.
T: The type of `input`.
Tidx: The type of `shape`.)");
  registry.Kernel("BroadcastTo", MakeFunctionKernel<BroadcastTo>).Types("T", AllDataTypes());
}

}  // namespace gradflow::broadcast_to
