// Placeholder, PlaceholderV2, PlaceholderWithDefault and EnsureShape.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"

namespace gradflow::placeholder {
namespace {

absl::Status PlaceholderShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The kernel runs only if the placeholder was not fed, because plans prune fed nodes.
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

absl::Status CheckDeclared(const PartialTensorShape& input, const PartialTensorShape& shape) {
  if (input.IsCompatibleWith(shape)) return absl::OkStatus();
  return errors::InvalidArgument("input has shape ", input.DebugString(), ", expected ",
                                 shape.DebugString());
}

absl::Status PlaceholderWithDefaultShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  GRADFLOW_RETURN_IF_ERROR(CheckDeclared(c.input(0), shape));
  // Ignores the shape of the input, because a fed value may have another shape.
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status EnsureShapeShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  GRADFLOW_RETURN_IF_ERROR(CheckDeclared(c.input(0), shape));
  GRADFLOW_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Forwards its input, whose shape must match the attribute `shape`.
class DeclaredShapeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("shape", &shape_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckDeclared(ctx.input(0).shape(), shape_));
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  PartialTensorShape shape_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Placeholder")
      .Group("array_ops")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }")
      .Shape(PlaceholderShape)
      .Doc(R"(A tensor that the caller of each run must feed.

A run that needs it fails if it is not fed.

output: The fed tensor.
dtype: The type of the tensor.
shape: The shape of the tensor, partially known or unknown.)");
  registry.Kernel("Placeholder", MakeKernel<PlaceholderKernel>).Types("dtype", AllDataTypes());

  registry.Op("PlaceholderV2")
      .Group("array_ops")
      .HandWritten()  // TensorFlow has no class for this op.
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Shape(PlaceholderShape)
      .Doc(R"(A tensor that the caller of each run must feed.

A run that needs it fails if it is not fed.

output: The fed tensor.
dtype: The type of the tensor.
shape: The shape of the tensor, partially known or unknown.)");
  registry.Kernel("PlaceholderV2", MakeKernel<PlaceholderKernel>).Types("dtype", AllDataTypes());

  registry.Op("PlaceholderWithDefault")
      .Group("array_ops")
      .Input("input: dtype")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Shape(PlaceholderWithDefaultShape)
      .Doc(R"(A tensor that the caller of a run may feed, and that otherwise is `input`.

input: The default value.
output: The fed tensor, or `input`.
dtype: The type of the tensor.
shape: The shape of the tensor, partially known or unknown. Must be compatible with the shape of
  `input`.)");
  registry.Kernel("PlaceholderWithDefault", MakeKernel<DeclaredShapeKernel>)
      .Types("dtype", AllDataTypes());

  registry.Op("EnsureShape")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("shape: shape")
      .Attr("T: type")
      .Shape(EnsureShapeShape)
      .Doc(R"(Returns its input, or an error if it does not have the expected shape.

input: Any tensor.
output: The same tensor.
shape: The expected shape, partially known or unknown.
T: The type of the tensor.)");
  registry.Kernel("EnsureShape", MakeKernel<DeclaredShapeKernel>).Types("T", AllDataTypes());
}

}  // namespace gradflow::placeholder
