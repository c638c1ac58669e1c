#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::concat {
namespace {

// Returns the shape of `values` concatenated along `axis`. REQUIRES: at least one has a known rank
absl::StatusOr<PartialTensorShape> ConcatShape(absl::Span<const PartialTensorShape> values,
                                               int64_t axis) {
  // The common dimensions; dimension `axis` is unknown.
  PartialTensorShape common;
  int d = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].unknown_rank()) continue;
    if (values[i].dims() == 0) {
      return errors::InvalidArgument("values[", i, "] is a scalar, which cannot be concatenated");
    }
    if (d < 0) {
      GRADFLOW_ASSIGN_OR_RETURN(d, CanonicalAxis("axis", axis, values[i].dims()));
    }
    PartialTensorShape others = values[i];
    if (d < others.dims()) others.set_dim(d, -1);
    if (!common.IsCompatibleWith(others)) {
      return errors::InvalidArgument("values[", i, "] has shape ", values[i].DebugString(),
                                     ", expected ", common.DebugString(),
                                     " to concatenate with the previous values along axis ", d);
    }
    GRADFLOW_ASSIGN_OR_RETURN(common, common.MergeWith(others));
  }
  int64_t total = 0;
  for (const PartialTensorShape& value : values) {
    const int64_t size = value.unknown_rank() ? -1 : value.dim_size(d);
    if (size < 0) return common;
    if (__builtin_add_overflow(total, size, &total)) {
      return errors::InvalidArgument("the sizes along axis ", d, " add up to more than 2^63 - 1");
    }
  }
  common.set_dim(d, total);
  return PartialTensorShape::Make(common.dim_sizes());
}

absl::Status ConcatShapeFn(ShapeContext& c) {
  const int axis_input = c.num_inputs() - 1;
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(axis_input, 0));
  std::vector<int64_t> axis;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(axis_input, &axis));
  std::vector<PartialTensorShape> values;
  // All values have the same rank.
  PartialTensorShape ranks;
  for (int i = 0; i < axis_input; ++i) {
    values.push_back(c.input(i));
    if (values[i].unknown_rank()) continue;
    const PartialTensorShape rank = PartialTensorShape::UnknownOfRank(values[i].dims());
    if (!ranks.IsCompatibleWith(rank)) {
      return errors::InvalidArgument("values[", i, "] has shape ", values[i].DebugString(),
                                     ", expected rank ", ranks.dims(),
                                     ", that of the previous values");
    }
    ranks = rank;
  }
  if (ranks.unknown_rank() || !known) {
    c.set_output(0, std::move(ranks));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, ConcatShape(values, axis[0]));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Concat(KernelContext& ctx) {
  const int count = ctx.num_inputs() - 1;
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t axis_value, ctx.ScalarInt(count, "axis"));
  std::vector<PartialTensorShape> values;
  values.reserve(count);
  for (int i = 0; i < count; ++i) values.emplace_back(ctx.input(i).shape());
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape joined, ConcatShape(values, axis_value));
  const TensorShape shape(joined.dim_sizes());
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("axis", axis_value, shape.dims()));
  for (int i = 0; i < count; ++i) {
    // All other values are empty.
    if (ctx.input(i).shape() == shape) {
      ctx.set_output(0, ctx.input(i));
      return absl::OkStatus();
    }
  }
  ctx.ExpectStringBytes(InputStringBytes(ctx, 0, count));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  const DimVector to = RowMajorStrides(shape.dim_sizes());
  int64_t start = 0;
  for (int i = 0; i < count && !ctx.ShouldStop(); ++i) {
    const absl::Span<const int64_t> dims = ctx.input(i).shape().dim_sizes();
    CopyStrided(ctx.run(), dims, ctx.input(i), {0, RowMajorStrides(dims)}, output,
                {start * to[axis], to});
    start += dims[axis];
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ConcatV2")
      .Group("array_ops")
      .Alias("Concat")
      .Input("values: N * T")
      .Input("axis: Tidx")
      .Output("output: T")
      .Attr("N: int >= 2")
      .Attr("T: type")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(ConcatShapeFn)
      .Doc(R"(Concatenates tensors along one dimension.

values: The tensors. Their shapes must agree in all dimensions except `axis`.
axis: A scalar: the dimension. Negative values count from the end.
output: The concatenated tensor.
N: The number of tensors.
T: The type of the tensors.
Tidx: The type of `axis`.)");
  registry.Kernel("ConcatV2", MakeFunctionKernel<Concat>);
}

}  // namespace gradflow::concat
