#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::split {
namespace {

// Returns the shape of each of `num_split` equal parts of `value` along `axis`.
absl::StatusOr<PartialTensorShape> PartShape(PartialTensorShape value, int axis, int num_split) {
  const int64_t size = value.dim_size(axis);
  if (size >= 0 && size % num_split != 0) {
    return errors::InvalidArgument("dimension ", axis, " of value, of shape ", value.DebugString(),
                                   ", must be a multiple of num_split, which is ", num_split);
  }
  if (size >= 0) value.set_dim(axis, size / num_split);
  return value;
}

absl::Status SplitShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckOneElement("split_dim", c.input(0)));
  std::vector<int64_t> split_dim;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(0, &split_dim));
  const PartialTensorShape& value = c.input(1);
  if (value.unknown_rank()) return absl::OkStatus();
  PartialTensorShape part = PartialTensorShape::UnknownOfRank(value.dims());
  if (known) {
    GRADFLOW_ASSIGN_OR_RETURN(const int axis,
                              CanonicalAxis("split_dim", split_dim[0], value.dims()));
    GRADFLOW_ASSIGN_OR_RETURN(part, PartShape(value, axis, c.num_outputs()));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return absl::OkStatus();
}

absl::Status Split(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckOneElement("split_dim", ctx.input(0).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector split_dim, ctx.Ints(0, "split_dim"));
  const TensorShape& value = ctx.input(1).shape();
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("split_dim", split_dim[0], value.dims()));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape part,
                            PartShape(value, axis, ctx.num_outputs()));
  const TensorShape shape(part.dim_sizes());
  const DimVector from = RowMajorStrides(value.dim_sizes());
  for (int i = 0; i < ctx.num_outputs() && !ctx.ShouldStop(); ++i) {
    const int64_t start = i * shape.dim_size(axis);
    GRADFLOW_RETURN_IF_ERROR(
        OutputStrided(ctx, i, shape, shape.dim_sizes(), 1, {start * from[axis], from}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Split")
      .Group("array_ops")
      .Rename("split_dim", "axis")
      .Input("split_dim: int32")
      .Input("value: T")
      .Output("output: num_split * T")
      .Attr("num_split: int >= 1")
      .Attr("T: type")
      .Shape(SplitShape)
      .Doc(R"(Splits a tensor into equal parts along one dimension.

split_dim: A scalar: the dimension. Negative values count from the end.
value: The tensor. The size of that dimension must be a multiple of `num_split`.
output: The parts, in order.
num_split: The number of parts.
T: The type of the tensors.)");
  registry.Kernel("Split", MakeFunctionKernel<Split>);
}

}  // namespace gradflow::split
