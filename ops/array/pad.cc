// Pad and PadV2.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/array/paddings.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::pad {
namespace {

absl::Status PadShape(ShapeContext& c) {
  if (c.num_inputs() == 3) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  GRADFLOW_ASSIGN_OR_RETURN(const KnownPaddings paddings, ReadPaddings(c, 1));
  if (paddings.input.unknown_rank()) return absl::OkStatus();
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(paddings.input.dims());
  if (paddings.known) {
    GRADFLOW_ASSIGN_OR_RETURN(shape, PaddedShape(paddings.input, paddings.rows));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Fills the borders of output 0, one dimension at a time. The borders of dimension d span all later
// dimensions and the interior of the earlier dimensions.
absl::Status Pad(KernelContext& ctx, const Tensor& value) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_ASSIGN_OR_RETURN(const Paddings paddings, ReadPaddings(ctx, 1, "paddings"));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape padded, PaddedShape(input.shape(), paddings));
  const TensorShape shape(padded.dim_sizes());
  if (shape == input.shape()) {
    ctx.set_output(0, input);
    return absl::OkStatus();
  }
  if (input.dtype() == DT_STRING) {
    const double copies = static_cast<double>(shape.num_elements() - input.NumElements());
    ctx.ExpectStringBytes(static_cast<double>(input.StringBytes()) + copies * value.StringBytes());
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const DimVector to = RowMajorStrides(shape.dim_sizes());
  DimVector dims(shape.dim_sizes().begin(), shape.dim_sizes().end());
  int64_t interior = 0;
  for (int d = 0; d < input.dims(); ++d) {
    const int64_t size = input.dim_size(d);
    dims[d] = paddings[d].before;
    FillStrided(ctx.run(), dims, value, output, {interior, to});
    dims[d] = paddings[d].after;
    FillStrided(ctx.run(), dims, value, output,
                {interior + (paddings[d].before + size) * to[d], to});
    dims[d] = size;
    interior += paddings[d].before * to[d];
  }
  const absl::Span<const int64_t> sizes = input.shape().dim_sizes();
  CopyStrided(ctx.run(), sizes, input, {0, RowMajorStrides(sizes)}, output, {interior, to});
  return absl::OkStatus();
}

absl::Status PadWithZero(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor zero, ZeroScalar(ctx.input_dtype(0)));
  return Pad(ctx, zero);
}

absl::Status PadWithValue(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "constant_values"));
  return Pad(ctx, ctx.input(2));
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Pad")
      .Group("array_ops")
      .Input("input: T")
      .Input("paddings: Tpaddings")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Shape(PadShape)
      .Doc(R"(Pads a tensor with zeros, or empty strings.

input: The tensor.
paddings: A matrix with a row [before, after] for each dimension: the number of elements to add
  before the first and after the last.
output: The padded tensor.
T: The type of `input`.
Tpaddings: The type of `paddings`.)");
  registry.Kernel("Pad", MakeFunctionKernel<PadWithZero>);

  registry.Op("PadV2")
      .Group("array_ops")
      .Input("input: T")
      .Input("paddings: Tpaddings")
      .Input("constant_values: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Shape(PadShape)
      .Doc(R"(Pads a tensor with a value.

input: The tensor.
paddings: A matrix with a row [before, after] for each dimension: the number of elements to add
  before the first and after the last.
constant_values: A scalar: the value of the added elements.
output: The padded tensor.
T: The type of `input`.
Tpaddings: The type of `paddings`.)");
  registry.Kernel("PadV2", MakeFunctionKernel<PadWithValue>);
}

}  // namespace gradflow::pad
