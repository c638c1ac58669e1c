// Fill, Empty, ZerosLike and OnesLike.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/common/variant_ops.h"

namespace gradflow::fill {
namespace {

absl::Status FillShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Fill(KernelContext& ctx) {
  // Like TensorFlow's kernel, accepts a scalar as a single dimension.
  if (ctx.input(0).dims() > 0) GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "dims"));
  GRADFLOW_RETURN_IF_ERROR(CheckScalarOrVector1("value", ctx.input(1).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(0, "dims"));
  absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
  if (!shape.ok()) return errors::Prefix("dims: ", shape.status());
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, *shape, &output));
  FillAll(ctx.run(), ctx.input(1), output);
  return absl::OkStatus();
}

absl::Status ZerosLike(KernelContext& ctx) {
  Tensor* output = nullptr;
  if (ctx.expected_output_dtype(0) == DT_VARIANT) return ZerosLikeVariants(ctx);
  if (!DataTypeIsPlainBytes(ctx.expected_output_dtype(0))) {
    // New strings are empty.
    return ctx.AllocateOutput(0, ctx.input(0).shape(), &output);
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &output));
  SetZero(ctx.run(), output);
  return absl::OkStatus();
}

absl::Status EmptyShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Always zeroes the elements, because the memory may hold data of other runs.
absl::Status Empty(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(0, "shape"));
  absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
  if (!shape.ok()) return errors::Prefix("shape: ", shape.status());
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, *shape, &output));
  if (DataTypeIsPlainBytes(output->dtype())) SetZero(ctx.run(), output);
  return absl::OkStatus();
}

template <typename T>
absl::Status OnesLike(KernelContext& ctx) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &output));
  FillAll(ctx.run(), Tensor(T(1)), output);
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Fill")
      .Group("array_ops")
      .Input("dims: index_type")
      .Input("value: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("index_type: {int32, int64} = DT_INT32")
      .Shape(FillShape)
      .Doc(R"(Returns a tensor filled with a scalar.

dims: A vector: the shape of the result.
value: A scalar: the value of every element.
output: The filled tensor.
T: The type of `value`.
index_type: The type of `dims`.)");
  registry.Kernel("Fill", MakeFunctionKernel<Fill>).Types("T", AllDataTypes());

  registry.Op("Empty")
      .Group("array_ops")
      .Input("shape: int32")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("init: bool = false")
      .Stateful()
      .Shape(EmptyShape)
      .Doc(R"(Returns a tensor of a given shape, for other nodes to fill.

shape: A vector: the shape of the result.
output: A tensor of zeros, or empty strings.
dtype: The type of the result.
init: Has no effect. The memory is always initialized, because it might contain data of other
  runs.)");
  registry.Kernel("Empty", MakeFunctionKernel<Empty>).Types("dtype", AllDataTypes());

  registry.Op("ZerosLike")
      .Group("array_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(R"(Returns zeros with the type and shape of a tensor.

x: Any tensor. Its elements are not used, except variants.
y: Zeros, or empty strings. For a list of tensors, a list of zeros.
T: The type of `x`.)");
  registry.Kernel("ZerosLike", MakeFunctionKernel<ZerosLike>).Types("T", AllDataTypes());

  registry.Op("OnesLike")
      .Group("array_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
          "uint64, complex64, complex128, bool}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns ones with the type and shape of a tensor.

x: A tensor of numbers or bools. Its elements are not used.
y: Ones, or true.
T: The type of `x`.)");
  ForEachType(ConcatTypes<NumberTypes, TypeList<bool>>::type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("OnesLike", MakeFunctionKernel<OnesLike<T>>).template Type<T>("T");
  });
}

}  // namespace gradflow::fill
