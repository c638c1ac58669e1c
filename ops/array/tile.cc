// Tile.
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::tile {
namespace {

// Returns the shape of `input` repeated by `multiples`. REQUIRES: the rank is known
absl::StatusOr<PartialTensorShape> TiledShape(const PartialTensorShape& input,
                                              absl::Span<const int64_t> multiples) {
  if (multiples.size() != static_cast<size_t>(input.dims())) {
    return errors::InvalidArgument("multiples must have one element for each dimension of input, ",
                                   "of shape ", input.DebugString(), ", but has ",
                                   multiples.size());
  }
  PartialTensorShape shape = input;
  for (int d = 0; d < input.dims(); ++d) {
    if (multiples[d] < 0) {
      return errors::InvalidArgument("multiples[", d, "] must not be negative, but is ",
                                     multiples[d]);
    }
    if (multiples[d] == 0) shape.set_dim(d, 0);
    if (input.dim_size(d) < 0) continue;
    const int64_t size = MultiplyWithoutOverflow(input.dim_size(d), multiples[d]);
    if (size < 0) {
      return errors::InvalidArgument("dimension ", d, " of input, of shape ", input.DebugString(),
                                     ", times multiples[", d, "] = ", multiples[d],
                                     " is more than 2^63 - 1");
    }
    shape.set_dim(d, size);
  }
  absl::StatusOr<PartialTensorShape> tiled = PartialTensorShape::Make(shape.dim_sizes());
  if (!tiled.ok()) return errors::Prefix("input repeated by multiples: ", tiled.status());
  return tiled;
}

absl::Status TileShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  std::vector<int64_t> multiples;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &multiples));
  const int64_t length = c.Dim(1, 0);
  PartialTensorShape input = c.input(0);
  if (input.unknown_rank()) {
    if (length < 0 || length > kMaxDims) return absl::OkStatus();
    input = PartialTensorShape::UnknownOfRank(static_cast<int>(length));
  }
  if (length >= 0 && length != input.dims()) {
    return errors::InvalidArgument("multiples must have one element for each dimension of input, ",
                                   "of shape ", input.DebugString(), ", but has ", length);
  }
  if (!known) {
    const PartialTensorShape partial = c.input_as_shape(1);
    multiples.assign(input.dims(), -1);
    if (partial.dims() == input.dims()) {
      multiples.assign(partial.dim_sizes().begin(), partial.dim_sizes().end());
    }
    for (int d = 0; d < input.dims(); ++d) {
      if (multiples[d] >= 0) continue;
      multiples[d] = 1;
      input.set_dim(d, -1);
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, TiledShape(input, multiples));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Tile(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "multiples"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector multiples, ctx.Ints(1, "multiples"));
  const TensorShape& input = ctx.input(0).shape();
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape tiled, TiledShape(input, multiples));
  // Splits each dimension into the copies, which have stride 0 in the input, and the elements of a
  // copy.
  const DimVector strides = RowMajorStrides(input.dim_sizes());
  DimVector dims;
  DimVector from;
  for (int d = 0; d < input.dims(); ++d) {
    dims.insert(dims.end(), {multiples[d], input.dim_size(d)});
    from.insert(from.end(), {0, strides[d]});
  }
  return OutputStrided(ctx, 0, TensorShape(tiled.dim_sizes()), dims, 0, {0, from});
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Tile")
      .Group("array_ops")
      .Input("input: T")
      .Input("multiples: Tmultiples")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tmultiples: {int32, int64} = DT_INT32")
      .Shape(TileShape)
      .Doc(R"(Repeats a tensor along its dimensions.

input: The tensor.
multiples: A vector: the number of repetitions along each dimension.
output: The repeated tensor. Dimension i has `multiples[i]` times the size of dimension i of
  `input`.
T: The type of `input`.
Tmultiples: The type of `multiples`.)");
  registry.Kernel("Tile", MakeFunctionKernel<Tile>).Types("T", AllDataTypes());
}

}  // namespace gradflow::tile
