// Cross.
#include <cstdint>
#include <type_traits>

#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::cross {
namespace {

absl::Status NotVectors(const PartialTensorShape& shape) {
  return errors::InvalidArgument("the last dimension must be 3, but a has shape ",
                                 shape.DebugString());
}

absl::Status CrossShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(0, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, c.input(0).MergeWith(c.input(1)));
  if (shape.dims() > 0) {
    const int64_t size = shape.dim_size(shape.dims() - 1);
    if (size >= 0 && size != 3) return NotVectors(shape);
  }
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status Cross(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "a", 1, "b"));
  const TensorShape shape = a.shape();
  if (shape.dims() < 1 || shape.dim_size(shape.dims() - 1) != 3) return NotVectors(shape);
  for (int i = 0; i < 2; ++i) {
    if (ctx.input_dtype(i) != ctx.expected_output_dtype(0)) {
      return errors::InvalidArgument(
          "a and b must be of type ", DataTypeString(ctx.expected_output_dtype(0)), ", but are ",
          DataTypeString(ctx.input_dtype(0)), " and ", DataTypeString(ctx.input_dtype(1)));
    }
  }
  Tensor* product = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &product));
  DispatchType(RealTypes(), a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = WrappingType<T>;
    using C = ComputeType<W>;
    const W* u = static_cast<const W*>(a.raw_data());
    const W* v = static_cast<const W*>(b.raw_data());
    W* w = static_cast<W*>(product->raw_data());
    ParallelFor(ctx, shape.num_elements() / 3, BlockSizeForCost(4),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
                    const auto minor = [&](int64_t j, int64_t k) {
                      // 1u makes products of narrow integers unsigned, so that they wrap around.
                      if constexpr (std::is_integral_v<W>) {
                        return static_cast<W>(1u * u[i + j] * v[i + k] - 1u * u[i + k] * v[i + j]);
                      } else {
                        return static_cast<W>(static_cast<C>(u[i + j]) * static_cast<C>(v[i + k]) -
                                              static_cast<C>(u[i + k]) * static_cast<C>(v[i + j]));
                      }
                    };
                    w[i] = minor(1, 2);
                    w[i + 1] = minor(2, 0);
                    w[i + 2] = minor(0, 1);
                  }
                });
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Cross")
      .Group("math_ops")
      .Input("a: T")
      .Input("b: T")
      .Output("product: T")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64}")
      .Shape(CrossShape)
      .Doc(R"(Computes the cross products of vectors of three elements.

Half and bfloat16 are computed in float and rounded once. Integers wrap around.

a: Vectors along the last dimension, which is 3.
b: Vectors, of the shape of `a`.
product: The cross product of each pair of vectors, of the shape of `a`.
T: The type of the inputs and the output.)");
  registry.Kernel("Cross", MakeFunctionKernel<Cross>).Types("T", DataTypesOf(RealTypes()));
}

}  // namespace gradflow::cross
