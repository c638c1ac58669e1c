// StridedSliceGrad and TensorStridedSliceUpdate.
#include <algorithm>
#include <optional>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/array/strided_slice.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::strided_slice_update {
namespace {

using strided_slice::AddSliceAttrs;
using strided_slice::kSliceAttrsDoc;
using strided_slice::LocateResult;
using strided_slice::ReadStridedSlice;
using strided_slice::SliceUpdateShape;
using strided_slice::StridedSliceMasks;
using strided_slice::StridedSlicePlan;

// ---- StridedSliceGrad ----

absl::Status CheckGradient(const PartialTensorShape& dy, const PartialTensorShape& slice) {
  if (dy.IsCompatibleWith(slice)) return absl::OkStatus();
  return errors::InvalidArgument("dy has shape ", dy.DebugString(), ", expected ",
                                 slice.DebugString(), ", the shape of the slice");
}

absl::Status StridedSliceGradShape(ShapeContext& c) {
  StridedSliceMasks masks;
  GRADFLOW_RETURN_IF_ERROR(masks.Read(c));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  GRADFLOW_ASSIGN_OR_RETURN(const std::optional<StridedSlicePlan> plan,
                            ReadStridedSlice(c, 1, shape, masks));
  if (plan.has_value()) {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape slice,
                              PartialTensorShape::Make(plan->shape));
    GRADFLOW_RETURN_IF_ERROR(CheckGradient(c.input(4), slice));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class StridedSliceGradKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return masks_.Read(construction); }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(0, "shape"));
    const absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
    if (!shape.ok()) return errors::Prefix("shape: ", shape.status());
    GRADFLOW_ASSIGN_OR_RETURN(const StridedSlicePlan plan,
                              ReadStridedSlice(ctx, 1, *shape, masks_));
    const Tensor& dy = ctx.input(4);
    GRADFLOW_RETURN_IF_ERROR(CheckGradient(dy.shape(), PartialTensorShape(plan.shape)));
    if (dy.dtype() == DT_STRING) ctx.ExpectStringBytes(static_cast<double>(dy.StringBytes()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, *shape, &output));
    if (DataTypeIsPlainBytes(dy.dtype())) SetZero(ctx.run(), output);
    CopyStrided(ctx.run(), plan.shape, dy, {0, RowMajorStrides(plan.shape)}, output,
                LocateResult(plan, *shape));
    return absl::OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

// ---- TensorStridedSliceUpdate ----

absl::Status UpdateShape(ShapeContext& c) { return SliceUpdateShape(c, c.input(0)); }

class UpdateKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return masks_.Read(construction); }
  absl::Status Compute(KernelContext& ctx) const override {
    const TensorShape shape = ctx.input(0).shape();
    GRADFLOW_ASSIGN_OR_RETURN(const StridedSlicePlan plan, ReadStridedSlice(ctx, 1, shape, masks_));
    const Tensor& value = ctx.input(4);
    GRADFLOW_RETURN_IF_ERROR(
        CheckBroadcastsTo("value", value.shape(), PartialTensorShape(plan.shape)));
    if (value.dtype() == DT_STRING) {
      // The slice replaces an equal number of strings, but the old strings may be short.
      const double slice = static_cast<double>(TensorShape(plan.shape).num_elements());
      const double copies = slice / std::max<double>(1, static_cast<double>(value.NumElements()));
      ctx.ExpectStringBytes(static_cast<double>(ctx.input(0).StringBytes()) +
                            copies * static_cast<double>(value.StringBytes()));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(OutputCopy(ctx, 0, &output));
    CopyStrided(ctx.run(), plan.shape, value,
                {0, BroadcastStrides(value.shape().dim_sizes(), plan.shape)}, output,
                LocateResult(plan, shape));
    return absl::OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

}  // namespace

void Register(Registry& registry) {
  AddSliceAttrs(
      registry.Op("StridedSliceGrad")
          .Group("array_ops")
          .Input("shape: Index")
          .Input("begin: Index")
          .Input("end: Index")
          .Input("strides: Index")
          .Input("dy: T")
          .Output("output: T")
          .Shape(StridedSliceGradShape)
          .Doc(absl::StrCat(R"(Returns the gradient of `StridedSlice`: zeros around the slice.

shape: A vector: the shape of the tensor that was sliced.
begin: See `StridedSlice`.
end: See `StridedSlice`.
strides: See `StridedSlice`.
dy: The gradient of the slice.
output: The gradient of the tensor: `dy` at the elements of the slice, and zero elsewhere.
T: The type of `dy`.)",
                            kSliceAttrsDoc)));
  registry.Kernel("StridedSliceGrad", MakeKernel<StridedSliceGradKernel>)
      .Types("T", AllDataTypes());

  AddSliceAttrs(registry.Op("TensorStridedSliceUpdate")
                    .Group("array_ops")
                    .Input("input: T")
                    .Input("begin: Index")
                    .Input("end: Index")
                    .Input("strides: Index")
                    .Input("value: T")
                    .Output("output: T")
                    .Shape(UpdateShape)
                    .Doc(absl::StrCat(R"(Replaces a slice of a tensor.

input: The tensor. It is not changed.
begin: See `StridedSlice`.
end: See `StridedSlice`.
strides: See `StridedSlice`.
value: The new elements. They are broadcast to the shape of the slice.
output: The tensor with the slice replaced.
T: The type of `input`.)",
                                      kSliceAttrsDoc)));
  registry.Kernel("TensorStridedSliceUpdate", MakeKernel<UpdateKernel>).Types("T", AllDataTypes());
}

}  // namespace gradflow::strided_slice_update
