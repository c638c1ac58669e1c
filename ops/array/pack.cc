// Pack and Unpack.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::pack {
namespace {

DimVector Without(DimVector dims, int axis) {
  dims.erase(dims.begin() + axis);
  return dims;
}

// Returns the shape of `count` tensors of shape `part` that are stacked along a new dimension
// `axis`.
absl::StatusOr<PartialTensorShape> StackedShape(const PartialTensorShape& part, int64_t count,
                                                int axis) {
  DimVector dims(part.dim_sizes().begin(), part.dim_sizes().end());
  dims.insert(dims.begin() + axis, count);
  return PartialTensorShape::Make(dims);
}

absl::Status PackShape(ShapeContext& c) {
  int64_t axis;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("axis", &axis));
  PartialTensorShape part = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!part.IsCompatibleWith(c.input(i))) {
      return errors::InvalidArgument("values must have one shape, but values[", i, "] has ",
                                     c.input(i).DebugString(), " after ", part.DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(part, part.MergeWith(c.input(i)));
  }
  if (part.unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const int d, CanonicalAxis("axis", axis, part.dims() + 1));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, StackedShape(part, c.num_inputs(), d));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class PackKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("axis", &axis_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const int count = ctx.num_inputs();
    const TensorShape& part = ctx.input(0).shape();
    for (int i = 1; i < count; ++i) {
      GRADFLOW_RETURN_IF_ERROR(
          ctx.CheckSameShape(0, "values[0]", i, absl::StrCat("values[", i, "]")));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("axis", axis_, part.dims() + 1));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape stacked, StackedShape(part, count, axis));
    const TensorShape shape(stacked.dim_sizes());
    if (count == 1) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor reshaped, ctx.input(0).Reshaped(shape));
      ctx.set_output(0, std::move(reshaped));
      return absl::OkStatus();
    }
    ctx.ExpectStringBytes(InputStringBytes(ctx, 0, count));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const DimVector from = RowMajorStrides(part.dim_sizes());
    const DimVector to = RowMajorStrides(shape.dim_sizes());
    for (int i = 0; i < count && !ctx.ShouldStop(); ++i) {
      CopyStrided(ctx.run(), part.dim_sizes(), ctx.input(i), {0, from}, output,
                  {i * to[axis], Without(to, axis)});
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

// Returns the shape of a slice of `value` along `axis`, whose size must be `num`.
absl::StatusOr<PartialTensorShape> PartShape(const PartialTensorShape& value, int64_t num,
                                             int axis) {
  if (const int64_t size = value.dim_size(axis); size >= 0 && size != num) {
    return errors::InvalidArgument("dimension ", axis, " of value, of shape ", value.DebugString(),
                                   ", must be num, which is ", num);
  }
  return PartialTensorShape(
      Without(DimVector(value.dim_sizes().begin(), value.dim_sizes().end()), axis));
}

absl::Status UnpackShape(ShapeContext& c) {
  int64_t axis;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("axis", &axis));
  const PartialTensorShape& value = c.input(0);
  if (value.unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const int d, CanonicalAxis("axis", axis, value.dims()));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape part, PartShape(value, c.num_outputs(), d));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return absl::OkStatus();
}

class UnpackKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("axis", &axis_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const TensorShape& value = ctx.input(0).shape();
    GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("axis", axis_, value.dims()));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape part,
                              PartShape(value, ctx.num_outputs(), axis));
    const TensorShape shape(part.dim_sizes());
    const DimVector from = RowMajorStrides(value.dim_sizes());
    for (int i = 0; i < ctx.num_outputs() && !ctx.ShouldStop(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(OutputStrided(ctx, i, shape, shape.dim_sizes(), 0,
                                             {i * from[axis], Without(from, axis)}));
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Pack")
      .Group("array_ops")
      .Alias("Stack")
      .Input("values: N * T")
      .Output("output: T")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Attr("axis: int = 0")
      .Shape(PackShape)
      .Doc(R"(Stacks tensors of the same shape along a new dimension.

values: The tensors.
output: The stacked tensor: index i of dimension `axis` selects `values[i]`.
N: The number of tensors.
T: The type of the tensors.
axis: The index of the new dimension in the result. Negative values count from the end: -1 is the
  last dimension.)");
  registry.Kernel("Pack", MakeKernel<PackKernel>).Types("T", AllDataTypes());

  registry.Op("Unpack")
      .Group("array_ops")
      .Alias("Unstack")
      .Input("value: T")
      .Output("output: num * T")
      .Attr("num: int >= 0")
      .Attr("T: type")
      .Attr("axis: int = 0")
      .Shape(UnpackShape)
      .Doc(R"(Unstacks a tensor along a dimension, which is removed.

value: A tensor of at least one dimension.
output: The slices: slice i is index i of dimension `axis`.
num: The size of dimension `axis`.
T: The type of the tensors.
axis: The dimension. Negative values count from the end.)");
  registry.Kernel("Unpack", MakeKernel<UnpackKernel>).Types("T", AllDataTypes());
}

}  // namespace gradflow::pack
