// Shape, ShapeN, Size and Rank.
#include <algorithm>
#include <limits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::shape {
namespace {

absl::Status ShapesOfShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, {c.input(i).dims()});
  return absl::OkStatus();
}

// Sets output `i` to a tensor of int32 or int64 with shape `shape` and elements `values`.
absl::Status OutputInts(KernelContext& ctx, int i, const TensorShape& shape,
                        absl::Span<const int64_t> values) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, shape, &output));
  if (output->dtype() == DT_INT64) {
    std::copy(values.begin(), values.end(), output->flat<int64_t>().begin());
    return absl::OkStatus();
  }
  const auto flat = output->flat<int32_t>();
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("out_type is int32, which cannot hold ", values[k],
                                     " of the input's shape ", ctx.input(i).shape().DebugString());
    }
    flat(k) = static_cast<int32_t>(values[k]);
  }
  return absl::OkStatus();
}

absl::Status Shapes(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const TensorShape& shape = ctx.input(i).shape();
    GRADFLOW_RETURN_IF_ERROR(OutputInts(ctx, i, {shape.dims()}, shape.dim_sizes()));
  }
  return absl::OkStatus();
}

absl::Status Size(KernelContext& ctx) {
  return OutputInts(ctx, 0, {}, {ctx.input(0).NumElements()});
}

absl::Status Rank(KernelContext& ctx) { return OutputInts(ctx, 0, {}, {ctx.input(0).dims()}); }

}  // namespace

void Register(Registry& registry) {
  registry.Op("Shape")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: out_type")
      .Attr("T: type")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape(ShapesOfShapes)
      .Doc(R"(Returns the shape of a tensor as a vector.

input: Any tensor.
output: The sizes of its dimensions; empty for a scalar.
T: The type of `input`.
out_type: The type of `output`.)");
  registry.Op("ShapeN")
      .Group("array_ops")
      .Input("input: N * T")
      .Output("output: N * out_type")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape(ShapesOfShapes)
      .Doc(R"(Returns the shapes of tensors, each as a vector.

input: Tensors of the same type.
output: The sizes of the dimensions of each.
N: The number of tensors.
T: The type of `input`.
out_type: The type of `output`.)");
  registry.Op("Size")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: out_type")
      .Attr("T: type")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Shape(ScalarShape)
      .Doc(R"(Returns the number of elements of a tensor.

input: Any tensor.
output: A scalar: the product of its dimensions.
T: The type of `input`.
out_type: The type of `output`.)");
  registry.Op("Rank")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: int32")
      .Attr("T: type")
      .Shape(ScalarShape)
      .Doc(R"(Returns the number of dimensions of a tensor.

input: Any tensor.
output: A scalar: 0 for a scalar, 1 for a vector, 2 for a matrix, and so on.
T: The type of `input`.)");
  registry.Kernel("Shape", MakeFunctionKernel<Shapes, /*Cheap=*/true>).Types("T", AllDataTypes());
  registry.Kernel("ShapeN", MakeFunctionKernel<Shapes, /*Cheap=*/true>).Types("T", AllDataTypes());
  registry.Kernel("Size", MakeFunctionKernel<Size, /*Cheap=*/true>).Types("T", AllDataTypes());
  registry.Kernel("Rank", MakeFunctionKernel<Rank, /*Cheap=*/true>).Types("T", AllDataTypes());
}

}  // namespace gradflow::shape
