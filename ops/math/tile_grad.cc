// TileGrad, which sums the copies of Tile.
#include <cstdint>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/math/reducers.h"
#include "gradflow/ops/math/reduction.h"

namespace gradflow::tile_grad {
namespace {

absl::Status CheckLength(int64_t found, const PartialTensorShape& input) {
  if (found < 0 || input.unknown_rank() || found == input.dims()) return absl::OkStatus();
  return errors::InvalidArgument("multiples must have one element for each dimension of input, ",
                                 "of shape ", input.DebugString(), ", but has ", found);
}

// Returns the shape of the tensor before it was tiled. REQUIRES: the rank is known
absl::StatusOr<PartialTensorShape> UntiledShape(PartialTensorShape shape,
                                                absl::Span<const int64_t> multiples) {
  const PartialTensorShape input = shape;
  GRADFLOW_RETURN_IF_ERROR(CheckLength(static_cast<int64_t>(multiples.size()), shape));
  for (int d = 0; d < shape.dims(); ++d) {
    if (multiples[d] <= 0) {
      return errors::InvalidArgument("multiples[", d, "] must be positive, but is ", multiples[d]);
    }
    const int64_t size = shape.dim_size(d);
    if (size < 0) continue;
    if (size % multiples[d] != 0) {
      return errors::InvalidArgument("dimension ", d, " of input, of shape ", input.DebugString(),
                                     ", must be a multiple of multiples[", d, "] = ", multiples[d]);
    }
    shape.set_dim(d, size / multiples[d]);
  }
  return shape;
}

absl::Status Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  const PartialTensorShape& input = c.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckLength(c.Dim(1, 0), input));
  std::vector<int64_t> multiples;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &multiples));
  if (input.unknown_rank()) return absl::OkStatus();
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(input.dims());
  if (known) {
    GRADFLOW_ASSIGN_OR_RETURN(shape, UntiledShape(input, multiples));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status TileGrad(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "multiples"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector multiples, ctx.Ints(1, "multiples"));
  const Tensor& input = ctx.input(0);
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape untiled,
                            UntiledShape(input.shape(), multiples));
  const TensorShape shape(untiled.dim_sizes());
  if (shape == input.shape()) {
    ctx.set_output(0, input);
    return absl::OkStatus();
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (shape.num_elements() == 0) return absl::OkStatus();
  // Splits each dimension into the copies and the elements of a copy. Dimensions of size 1 are left
  // out. At most 62 remain, because the number of elements fits in an int64.
  DimVector dims;
  DimVector kept;
  std::vector<bool> reduced;
  for (int d = 0; d < shape.dims(); ++d) {
    if (multiples[d] > 1) {
      dims.push_back(multiples[d]);
      reduced.push_back(true);
    }
    if (shape.dim_size(d) > 1) {
      dims.push_back(shape.dim_size(d));
      kept.push_back(shape.dim_size(d));
      reduced.push_back(false);
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor copies, input.Reshaped(TensorShape(dims)));
  GRADFLOW_ASSIGN_OR_RETURN(Tensor sums, output->Reshaped(TensorShape(kept)));
  return ReduceTensor(ctx, SumReducer(input.dtype()), copies, reduced, &sums);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("TileGrad")
      .Group("array_ops")
      .Input("input: T")
      .Input("multiples: int32")
      .Output("output: T")
      .Attr("T: type")
      .Deprecated(3, "TileGrad has been replaced with reduce_sum")
      .Shape(Shape)
      .Doc(R"(Returns the gradient of `Tile`: the sum of the copies.

Graphs of version 3 and later use `Sum` of a `Reshape`. There are kernels for numbers.

input: The gradient of the repeated tensor.
multiples: A vector: the number of repetitions along each dimension.
output: The gradient of the tensor.
T: The type of both.)");
  registry.Kernel("TileGrad", MakeFunctionKernel<TileGrad>).Types("T", DataTypesOf(NumberTypes()));
}

}  // namespace gradflow::tile_grad
