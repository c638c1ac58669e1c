#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

// What a type computes in: half and bfloat16 in float.
template <typename T>
using Arithmetic = std::conditional_t<kIsFloat16<T>, float, T>;

// The number of start, start + delta, ... before limit.
template <typename T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  const auto describe = [&] {
    return absl::StrCat(Arithmetic<T>(start), ", ", Arithmetic<T>(limit), " and ",
                        Arithmetic<T>(delta));
  };
  if constexpr (!std::is_integral_v<T>) {
    for (const T value : {start, limit, delta}) {
      if (!std::isfinite(Arithmetic<T>(value))) {
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
    // Unsigned, in which neither the distance nor the negation of the least delta overflows.
    const auto a = static_cast<uint64_t>(start);
    const auto b = static_cast<uint64_t>(limit);
    const auto step = static_cast<uint64_t>(delta);
    const uint64_t distance = forward ? b - a : a - b;
    const uint64_t stride = forward ? step : -step;
    // Over the maximum of an int64 it becomes negative.
    size = static_cast<int64_t>(distance / stride + (distance % stride != 0));
  } else {
    // Rounded to the type at every step: 0.3f / 0.1f is exactly 3, which the exact quotient of
    // these two floats is not.
    const double steps = std::ceil(std::abs(double{T(T(limit - start) / delta)}));
    // 2^63 is the least size that is too large.
    if (steps < 9223372036854775808.0) size = static_cast<int64_t>(steps);
  }
  if (size < 0) {
    return errors::InvalidArgument("the range has more elements than a 64-bit integer counts: ",
                                   "start, limit and delta are ", describe());
  }
  return size;
}

template <typename T>
absl::StatusOr<int64_t> RangeSize(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  return RangeSize<T>(start.scalar<T>()(), limit.scalar<T>()(), delta.scalar<T>()());
}

absl::Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  const Tensor* start = c.input_tensor(0);
  const Tensor* limit = c.input_tensor(1);
  const Tensor* delta = c.input_tensor(2);
  absl::StatusOr<int64_t> size = -1;
  if (start != nullptr && limit != nullptr && delta != nullptr) {
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
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "start"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "limit"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "delta"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t size,
                            RangeSize<T>(ctx.input(0), ctx.input(1), ctx.input(2)));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {size}, &output));
  const Arithmetic<T> start = ctx.input(0).scalar<T>()();
  const Arithmetic<T> delta = ctx.input(2).scalar<T>()();
  T* values = output->flat<T>().data();
  ParallelFor(size, BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<T>) {
        // Unsigned, in which what goes over the type's range on the way comes back.
        values[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                   static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      } else {
        // Not by adding delta again and again, whose errors add up.
        values[i] = T(start + static_cast<Arithmetic<T>>(i) * delta);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterRange(Registry& registry) {
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
      .Doc(R"(The numbers from `start` to before `limit`, `delta` apart.

Element i is `start + i * delta`, computed in the type (half and bfloat16 in float).

start: A scalar: the first number.
limit: A scalar: what the numbers stop before. Not before `start` in the direction of `delta`.
delta: A scalar: the distance, not 0.
output: A vector; empty if `start` is `limit`.
Tidx: The type of the numbers.)");
  using Types = TypeList<bfloat16, half, float, double, int8_t, int16_t, int32_t, int64_t, uint16_t,
                         uint32_t, uint64_t>;
  ForEachType(Types(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("Range", MakeFunctionKernel<Range<T>>).template Type<T>("Tidx");
  });
}

}  // namespace gradflow
