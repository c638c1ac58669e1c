// ClipByValue.
#include <complex>
#include <cstdint>

#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::clip_by_value {
namespace {

// Returns INVALID_ARGUMENT unless each bound is a scalar or has the shape of t.
absl::Status CheckBound(const char* name, const PartialTensorShape& bound,
                        const PartialTensorShape& t) {
  if (bound.dims() == 0 || t.IsCompatibleWith(bound)) return absl::OkStatus();
  return errors::InvalidArgument(name, " has shape ", bound.DebugString(),
                                 ", expected a scalar or the shape of t, ", t.DebugString());
}

absl::Status CheckBounds(const PartialTensorShape& t, const PartialTensorShape& min,
                         const PartialTensorShape& max) {
  GRADFLOW_RETURN_IF_ERROR(CheckBound("clip_value_min", min, t));
  return CheckBound("clip_value_max", max, t);
}

absl::Status ClipShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckBounds(c.input(0), c.input(1), c.input(2)));
  return UnchangedShape(c);
}

// The maximum is applied first, as in TensorFlow. A NaN bound has no effect. Complex numbers are
// clipped by their real part, and the result is real.
template <typename T>
T Clip(T value, T min, T max) {
  if constexpr (kIsComplex<T>) {
    return T(Clip(value.real(), min.real(), max.real()));
  } else {
    const T below = value > max ? max : value;
    return below < min ? min : below;
  }
}

template <typename T>
GRADFLOW_CLONES void ClipLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  const T* const t = static_cast<const T*>(x[0]);
  const T* const min = static_cast<const T*>(x[1]);
  const T* const max = static_cast<const T*>(x[2]);
  T* const result = static_cast<T*>(out);
  if (strides[1] == 0 && strides[2] == 0) {
    const T low = *min;
    const T high = *max;
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) result[i] = Clip(t[i], low, high);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      result[i] = Clip(t[i], min[i * strides[1]], max[i * strides[2]]);
    }
  }
}

template <typename T>
absl::Status ClipByValue(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckBounds(PartialTensorShape(ctx.input(0).shape()),
                                       PartialTensorShape(ctx.input(1).shape()),
                                       PartialTensorShape(ctx.input(2).shape())));
  constexpr int kSize = sizeof(T);
  return RunElementwise(ctx, {kSize, kSize, kSize}, kCheapNanoseconds, ClipLoop<T>);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ClipByValue")
      .Group("math_ops")
      .Input("t: T")
      .Input("clip_value_min: T")
      .Input("clip_value_max: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Shape(ClipShape)
      .Doc(R"(Clamps the elements of a tensor to a range.

Elements greater than the maximum become the maximum. Elements less than the minimum then become the
minimum. NaN stays NaN. As in TensorFlow, complex numbers become their real parts, clamped to the
real parts of the bounds. There are no kernels for quantized integers.

t: A tensor.
clip_value_min: The minimum: a scalar, or a tensor of the shape of `t`.
clip_value_max: The maximum: a scalar, or a tensor of the shape of `t`.
output: The clamped elements, of the shape of `t`.
T: The type of the inputs and the output.)");
  ForEachType(NumberTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("ClipByValue", MakeFunctionKernel<ClipByValue<ComputeType<T>>>)
        .template Type<T>("T");
  });
}

}  // namespace gradflow::clip_by_value
