// Split and SplitV.
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::split {
namespace {

// Returns the shape of one of `num_split` equal parts of `value` along `axis`.
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

// ---- SplitV ----

// The argument size_splits: the size of each part. One size may be -1, which stands for the
// remaining elements. Sizes are read in place, so any number of parts takes little memory.
class PartSizes {
 public:
  PartSizes(const Tensor& size_splits, int num_split)
      : sizes_(size_splits), num_split_(num_split) {}

  // Returns the size of part i. REQUIRES: Resolve() returned OK
  int64_t operator[](int i) const { return i == rest_part_ ? rest_ : sizes_[i]; }

  // Checks that the sizes add up to `size`, dimension `axis` of `value`. If `size` is unknown (-1),
  // checks that they may add up.
  absl::Status Resolve(const PartialTensorShape& value, int axis) {
    const int64_t size = value.dim_size(axis);
    int64_t sum = 0;
    for (int i = 0; i < num_split_; ++i) {
      if (sizes_[i] == -1 && rest_part_ < 0) {
        rest_part_ = i;
      } else if (sizes_[i] < 0) {
        return errors::InvalidArgument("size_splits[", i, "] must not be negative, except for one ",
                                       "-1, but is ", sizes_[i]);
      } else if (__builtin_add_overflow(sum, sizes_[i], &sum)) {
        return errors::InvalidArgument("size_splits add up to more than 2^63 - 1");
      }
    }
    if (size < 0) return absl::OkStatus();
    if (rest_part_ >= 0 ? sum > size : sum != size) {
      return errors::InvalidArgument(
          "size_splits add up to ", sum, rest_part_ >= 0 ? " and -1" : "", ", but dimension ", axis,
          " of value, of shape ", value.DebugString(), ", has size ", size);
    }
    rest_ = size - sum;
    return absl::OkStatus();
  }

 private:
  const IndexReader sizes_;
  const int num_split_;
  int rest_part_ = -1;
  int64_t rest_ = -1;
};

absl::Status CheckSizeSplits(const PartialTensorShape& size_splits, int num_split) {
  if (size_splits.IsCompatibleWith({num_split})) return absl::OkStatus();
  return errors::InvalidArgument("size_splits must have shape [", num_split,
                                 "], by num_split, but has shape ", size_splits.DebugString());
}

absl::Status SplitVShape(ShapeContext& c) {
  const int num_split = c.num_outputs();
  GRADFLOW_RETURN_IF_ERROR(CheckSizeSplits(c.input(1), num_split));
  GRADFLOW_RETURN_IF_ERROR(CheckOneElement("split_dim", c.input(2)));
  std::vector<int64_t> split_dim;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &split_dim));
  const PartialTensorShape& value = c.input(0);
  if (value.unknown_rank()) return absl::OkStatus();
  PartialTensorShape part = PartialTensorShape::UnknownOfRank(value.dims());
  if (!known) {
    for (int i = 0; i < num_split; ++i) c.set_output(i, part);
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("split_dim", split_dim[0], value.dims()));
  part = value;
  const Tensor* const size_splits = c.input_tensor(1);
  if (size_splits == nullptr || !c.input(1).IsFullyDefined()) {
    // A single part is the entire value.
    if (num_split > 1) part.set_dim(axis, -1);
    for (int i = 0; i < num_split; ++i) c.set_output(i, part);
    return absl::OkStatus();
  }
  PartSizes sizes(*size_splits, num_split);
  GRADFLOW_RETURN_IF_ERROR(sizes.Resolve(value, axis));
  for (int i = 0; i < num_split; ++i) {
    part.set_dim(axis, sizes[i]);
    c.set_output(i, part);
  }
  return absl::OkStatus();
}

absl::Status SplitV(KernelContext& ctx) {
  const int num_split = ctx.num_outputs();
  GRADFLOW_RETURN_IF_ERROR(CheckSizeSplits(ctx.input(1).shape(), num_split));
  GRADFLOW_RETURN_IF_ERROR(CheckOneElement("split_dim", ctx.input(2).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector split_dim, ctx.Ints(2, "split_dim"));
  TensorShape part = ctx.input(0).shape();
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("split_dim", split_dim[0], part.dims()));
  const DimVector from = RowMajorStrides(part.dim_sizes());
  PartSizes sizes(ctx.input(1), num_split);
  GRADFLOW_RETURN_IF_ERROR(sizes.Resolve(part, axis));
  int64_t start = 0;
  for (int i = 0; i < num_split; ++i) {
    part.set_dim(axis, sizes[i]);
    GRADFLOW_RETURN_IF_ERROR(
        OutputStrided(ctx, i, part, part.dim_sizes(), 0, {start * from[axis], from}));
    start += sizes[i];
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
  registry.Kernel("Split", MakeFunctionKernel<Split>).Types("T", AllDataTypes());

  registry.Op("SplitV")
      .Group("array_ops")
      .Rename("split_dim", "axis")
      .Input("value: T")
      .Input("size_splits: Tlen")
      .Input("split_dim: int32")
      .Output("output: num_split * T")
      .Attr("num_split: int >= 1")
      .Attr("T: type")
      .Attr("Tlen: {int8, int32, int64} = DT_INT64")
      .Shape(SplitVShape)
      .Doc(R"(Splits a tensor into parts of given sizes along one dimension.

value: The tensor.
size_splits: A vector: the size of each part. The sizes must add up to the size of the dimension.
  One size may be -1, which stands for the remaining elements.
split_dim: A scalar: the dimension. Negative values count from the end.
output: The parts, in order.
num_split: The number of parts.
T: The type of the tensors.
Tlen: The type of `size_splits`.)");
  registry.Kernel("SplitV", MakeFunctionKernel<SplitV>).Types("T", AllDataTypes());
}

}  // namespace gradflow::split
