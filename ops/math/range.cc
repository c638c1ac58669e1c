// Range.
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow::range {
namespace {

// Returns the number of elements start, start + delta, ... before limit.
template <typename T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  const auto describe = [&] {
    return absl::StrCat(ComputeType<T>(start), ", ", ComputeType<T>(limit), " and ",
                        ComputeType<T>(delta));
  };
  if constexpr (!std::is_integral_v<T>) {
    for (const T value : {start, limit, delta}) {
      if (!std::isfinite(ComputeType<T>(value))) {
        return errors::InvalidArgument("start, limit and delta must be finite, but are ",
                                       describe());
      }
    }
  }
  if (delta == 0) return errors::InvalidArgument("delta must not be 0");
  const bool forward = delta > 0;
  if (forward ? start > limit : start < limit) {
    return errors::InvalidArgument("start must be at ", forward ? "most" : "least",
                                   " limit when delta is ", forward ? "positive" : "negative",
                                   ", but start, limit and delta are ", describe());
  }
  int64_t size = -1;
  if constexpr (std::is_integral_v<T>) {
    // Unsigned arithmetic: neither the distance nor the negation of the smallest delta overflows.
    const auto a = static_cast<uint64_t>(start);
    const auto b = static_cast<uint64_t>(limit);
    const auto step = static_cast<uint64_t>(delta);
    const uint64_t distance = forward ? b - a : a - b;
    const uint64_t stride = forward ? step : -step;
    // Negative if the size exceeds the maximum of int64.
    size = static_cast<int64_t>(distance / stride + (distance % stride != 0));
  } else {
    // Rounds the quotient to T: 0.3f / 0.1f must be exactly 3, but the exact quotient of these two
    // floats is not 3.
    const double steps = std::ceil(std::abs(double{T(T(limit - start) / delta)}));
    // Sizes of 2^63 and above are too large.
    if (steps < 9223372036854775808.0) size = static_cast<int64_t>(steps);
  }
  if (size < 0) {
    return errors::InvalidArgument("the range has more elements than fit in an int64: ",
                                   "start, limit and delta are ", describe());
  }
  return size;
}

template <typename T>
absl::StatusOr<int64_t> RangeSize(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  return RangeSize<T>(start.flat<T>()(0), limit.flat<T>()(0), delta.flat<T>()(0));
}

absl::Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  const Tensor* start = c.input_tensor(0);
  const Tensor* limit = c.input_tensor(1);
  const Tensor* delta = c.input_tensor(2);
  absl::StatusOr<int64_t> size = -1;
  const bool are_scalars =
      c.input(0).IsFullyDefined() && c.input(1).IsFullyDefined() && c.input(2).IsFullyDefined();
  if (are_scalars && start != nullptr && limit != nullptr && delta != nullptr) {
    DispatchType(RealTypes(), start->dtype(), [&](auto tag) {
      size = RangeSize<typename decltype(tag)::type>(*start, *limit, *delta);
    });
    GRADFLOW_RETURN_IF_ERROR(size.status());
  }
  c.set_output(0, {*size});
  return absl::OkStatus();
}

template <typename T>
absl::Status Range(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckScalarOrVector1("start", ctx.input(0).shape()));
  GRADFLOW_RETURN_IF_ERROR(CheckScalarOrVector1("limit", ctx.input(1).shape()));
  GRADFLOW_RETURN_IF_ERROR(CheckScalarOrVector1("delta", ctx.input(2).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t size,
                            RangeSize<T>(ctx.input(0), ctx.input(1), ctx.input(2)));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {size}, &output));
  const ComputeType<T> start = ctx.input(0).flat<T>()(0);
  const ComputeType<T> delta = ctx.input(2).flat<T>()(0);
  T* values = output->flat<T>().data();
  ParallelFor(ctx, size, BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<T>) {
        // Unsigned arithmetic: intermediate results wrap around.
        values[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                   static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      } else {
        // Multiplies, because repeated addition would accumulate rounding errors.
        values[i] = T(start + static_cast<ComputeType<T>>(i) * delta);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Range")
      .Group("math_ops")
      .Input("start: Tidx")
      .Input("limit: Tidx")
      .Input("delta: Tidx")
      .Output("output: Tidx")
      .Attr(
          "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, "
          "uint64} = DT_INT32")
      .Shape(RangeShape)
      .Doc(R"(Returns the numbers from `start` up to but excluding `limit`, in steps of `delta`.

Element i is `start + i * delta`, computed in the element type (half and bfloat16 in float).

start: A scalar: the first number.
limit: A scalar: the exclusive limit. At least `start` if `delta` is positive, at most `start` if
  `delta` is negative.
delta: A scalar: the step, not 0.
output: A vector; empty if `start` equals `limit`.
Tidx: The type of the numbers.)");
  using Types = TypeList<bfloat16, half, float, double, int8_t, int16_t, int32_t, int64_t, uint16_t,
                         uint32_t, uint64_t>;
  ForEachType(Types(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("Range", MakeFunctionKernel<Range<T>>).template Type<T>("Tidx");
  });
}

}  // namespace gradflow::range
