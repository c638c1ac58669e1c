// StridedSliceAssign and ResourceStridedSliceAssign.
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/array/strided_slice.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::strided_slice_assign {
namespace {

using strided_slice::AddSliceAttrs;
using strided_slice::kSliceAttrsDoc;
using strided_slice::LocateResult;
using strided_slice::ReadStridedSlice;
using strided_slice::SliceUpdateShape;
using strided_slice::StridedSliceMasks;
using strided_slice::StridedSlicePlan;

absl::Status AssignShape(ShapeContext& c) { return SliceUpdateShape(c, c.variable_shape(0)); }

class StridedSliceAssignKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return masks_.Read(construction); }
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& elements = ctx.input(4);
    VariableUpdate update;
    GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, {0}, elements.dtype()));
    const TensorShape shape = update.value(0).shape();
    // Checks everything before changing anything.
    GRADFLOW_ASSIGN_OR_RETURN(const StridedSlicePlan plan, ReadStridedSlice(ctx, 1, shape, masks_));
    GRADFLOW_RETURN_IF_ERROR(
        CheckBroadcastsTo("value", elements.shape(), PartialTensorShape(plan.shape)));
    GRADFLOW_RETURN_IF_ERROR(update.MakeWritable());
    Tensor& value = update.value(0);
    const bool is_string = value.dtype() == DT_STRING && value.NumElements() > 0;
    if (is_string) {
      const int64_t slice = TensorShape(plan.shape).num_elements();
      const size_t copies =
          elements.NumElements() == 0 ? 0 : static_cast<size_t>(slice / elements.NumElements());
      GRADFLOW_RETURN_IF_ERROR(
          value.ChargeStrings(value.StringBytes() + elements.StringBytes() * copies));
    }
    CopyStrided(update.run(), plan.shape, elements,
                {0, BroadcastStrides(elements.shape().dim_sizes(), plan.shape)}, &value,
                LocateResult(plan, shape));
    if (is_string) GRADFLOW_RETURN_IF_ERROR(value.ChargeStrings());
    if (ctx.num_outputs() > 0) ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

// Adds the arguments that both ops have.
Registry::OpRegistrar& AddArguments(Registry::OpRegistrar& op, absl::string_view output_doc) {
  return AddSliceAttrs(
      op.Input("begin: Index")
          .Input("end: Index")
          .Input("strides: Index")
          .Input("value: T")
          .Shape(AssignShape)
          .Doc(absl::StrCat(R"(Replaces a slice of a variable.

If an argument is wrong, nothing changes.

ref: The variable.
begin: See `StridedSlice`.
end: See `StridedSlice`.
strides: See `StridedSlice`.
value: The new elements. They are broadcast to the shape of the slice.
)",
                            output_doc, "T: The type of the variable.", kSliceAttrsDoc)));
}

}  // namespace

void Register(Registry& registry) {
  AddArguments(registry.Op("StridedSliceAssign")
                   .Group("array_ops")
                   .Input("ref: Ref(T)")
                   .Output("output_ref: Ref(T)"),
               "output_ref: The variable, for nodes that use it after the update.\n");
  registry.Kernel("StridedSliceAssign", MakeKernel<StridedSliceAssignKernel>)
      .Types("T", AllDataTypes());
  AddArguments(registry.Op("ResourceStridedSliceAssign").Group("array_ops").Input("ref: resource"),
               "");
  registry.Kernel("ResourceStridedSliceAssign", MakeKernel<StridedSliceAssignKernel>)
      .Types("T", AllDataTypes());
}

}  // namespace gradflow::strided_slice_assign
