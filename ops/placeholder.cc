#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

absl::Status PlaceholderShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// A plan cuts out the nodes that are fed, so that a placeholder which runs has not been.
class PlaceholderKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("shape", &shape_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    return errors::InvalidArgument("a value must be fed, of type ",
                                   DataTypeString(ctx.expected_output_dtype(0)),
                                   shape_.unknown_rank() ? "" : " and shape ",
                                   shape_.unknown_rank() ? "" : shape_.DebugString());
  }
  bool IsCheap() const override { return true; }

 private:
  PartialTensorShape shape_;
};

absl::Status CheckDefault(const PartialTensorShape& input, const PartialTensorShape& shape) {
  if (input.IsCompatibleWith(shape)) return absl::OkStatus();
  return errors::InvalidArgument("input has shape ", input.DebugString(), ", but shape is ",
                                 shape.DebugString());
}

absl::Status PlaceholderWithDefaultShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  GRADFLOW_RETURN_IF_ERROR(CheckDefault(c.input(0), shape));
  // Not what is known of the input: what is fed may differ from it.
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class PlaceholderWithDefaultKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("shape", &shape_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckDefault(ctx.input(0).shape(), shape_));
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  PartialTensorShape shape_;
};

}  // namespace

void RegisterPlaceholder(Registry& registry) {
  registry.Op("Placeholder")
      .Group("array_ops")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }")
      .Shape(PlaceholderShape)
      .Doc(R"(A tensor that the caller of each run gives.

A run in which it is needed but not fed fails.

output: The tensor that is fed.
dtype: The type of the tensor.
shape: What is known of its shape; nothing by default.)");
  registry.Kernel("Placeholder", MakeKernel<PlaceholderKernel>);

  registry.Op("PlaceholderWithDefault")
      .Group("array_ops")
      .Input("input: dtype")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Shape(PlaceholderWithDefaultShape)
      .Doc(R"(A tensor that the caller of a run may give; otherwise it is `input`.

input: The value if none is fed.
output: The tensor that is fed, or `input`.
dtype: The type of the tensor.
shape: What is known of its shape, which that of `input` must fit.)");
  registry.Kernel("PlaceholderWithDefault", MakeKernel<PlaceholderWithDefaultKernel>);
}

}  // namespace gradflow
