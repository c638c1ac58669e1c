// Functions of two arguments: Pow, Atan2, Xlogy, Xlog1py and NextAfter.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/clones.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_chunks.h"

namespace gradflow::power {
namespace {

constexpr int kPicoseconds = 10000;

template <typename T, Elementary2 kFunction>
void RealLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  ForEachChunk<T, T, 2>(x, strides, out, n, [&](const T* const* a, T* result, int64_t count) {
    T buffers[2][kElementwiseChunk];
    ApplyElementary(kFunction, Repeated(a[0], strides[0], count, buffers[0]),
                    Repeated(a[1], strides[1], count, buffers[1]), result, count);
  });
}

// Sets each element to x * f(y), or to 0 if x is 0.
template <typename T, Elementary kFunction>
void TimesFunctionLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  ForEachChunk<T, T, 2>(x, strides, out, n, [&](const T* const* a, T* result, int64_t count) {
    T values[kElementwiseChunk];
    ApplyElementary(kFunction, a[1], values, strides[1] == 0 ? 1 : count);
    const void* const operands[] = {a[0], values};
    internal::BinaryRun<T, T>(
        [](T factor, T value) {
          const T product = factor * value;
          return factor == 0 ? factor : product;
        },
        operands, strides, result, count);
  });
}

struct ComplexPower {
  static constexpr double kNanoseconds = 100;
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(std::pow(complex128(x), complex128(y)));
  }
};

struct TimesLog {
  static constexpr double kNanoseconds = 50;
  template <typename T>
  T operator()(T x, T y) const {
    return x == T(0) ? x : static_cast<T>(complex128(x) * std::log(complex128(y)));
  }
};

struct TimesLog1p {
  static constexpr double kNanoseconds = 50;
  template <typename T>
  T operator()(T x, T y) const {
    return x == T(0) ? x : static_cast<T>(complex128(x) * std::log(1.0 + complex128(y)));
  }
};

// The power of integers, which wraps around. REQUIRES: the exponent is not negative
struct IntegerPower {
  static constexpr double kNanoseconds = 10;
  template <typename T>
  T operator()(T x, T y) const {
    uint64_t result = 1;
    uint64_t square = static_cast<uint64_t>(x);
    for (auto rest = static_cast<std::make_unsigned_t<T>>(y); rest != 0;
         rest = static_cast<decltype(rest)>(rest >> 1)) {
      if ((rest & 1) != 0) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};

template <typename T>
absl::Status PowerOfIntegers(KernelContext& ctx) {
  if (ctx.input(0).NumElements() > 0 && DataTypeSize(ctx.input_dtype(1)) == sizeof(T)) {
    const T* const y = static_cast<const T*>(ctx.input(1).raw_data());
    std::atomic<bool> has_negative{false};
    ParallelFor(ctx, ctx.input(1).NumElements(), BlockSizeForCost(kCheapNanoseconds),
                [&](int64_t begin, int64_t end) {
                  int negative = 0;
                  for (int64_t i = begin; i < end; ++i) negative |= static_cast<int>(y[i] < 0);
                  if (negative != 0) has_negative = true;
                });
    if (has_negative) {
      return errors::InvalidArgument("integers to negative integer powers are not allowed");
    }
  }
  return Binary<T>(ctx, IntegerPower(), IntegerPower::kNanoseconds);
}

template <typename T>
void NextAfterLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  internal::BinaryRun<T, T>([](T from, T to) { return std::nextafter(from, to); }, x, strides, out,
                            n);
}

// Registers kernels for real types. Includes half and bfloat16 if `with_halves` is true.
template <ElementwiseLoop kFloatLoop, ElementwiseLoop kDoubleLoop>
void RegisterReal(Registry& registry, absl::string_view op, bool with_halves = true) {
  DataTypeVector floats = {DT_FLOAT};
  if (with_halves) floats = {DT_FLOAT, DT_HALF, DT_BFLOAT16};
  registry.Kernel(op, MakeBinaryKernel<kFloatLoop, sizeof(float), kPicoseconds>)
      .Types("T", std::move(floats));
  registry.Kernel(op, MakeBinaryKernel<kDoubleLoop, sizeof(double), kPicoseconds * 2>)
      .Types("T", {DT_DOUBLE});
}

void Define(Registry& registry, absl::string_view op, absl::string_view types,
            absl::string_view summary, absl::string_view details) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(types)
      .Shape(BroadcastBinaryShape)
      .Doc(absl::StrCat(summary, R"(

The inputs are broadcast to one shape as NumPy does. )",
                        details, R"(

x: A tensor.
y: A tensor of the same type.
z: The results, of the broadcast shape.
T: The type of the inputs and the output.)"));
}

// Squares and cubes of floats are rounded once: a double holds the square exactly.
inline float CubeOf(float x) {
  const double value = x;
  return static_cast<float>(value * value * value);
}
GRADFLOW_CLONES void SquareFloats(const float* x, float* z, int64_t n) {
  GRADFLOW_SAME_INDEX_LOOP
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] * x[i];
}
GRADFLOW_CLONES void CubeFloats(const float* x, float* z, int64_t n) {
  GRADFLOW_SAME_INDEX_LOOP
  for (int64_t i = 0; i < n; ++i) z[i] = CubeOf(x[i]);
}

// Returns the number of exponents that are 2 or 3.
GRADFLOW_CLONES int64_t CountProducts(const float* exponents, int64_t n) {
  int32_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += exponents[i] == 2 || exponents[i] == 3 ? 1 : 0;
  return count;
}

// Powers by 2 and 3 have the same bits whether the exponent is repeated or not.
void FloatPowerLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  const auto* const base = static_cast<const float*>(x[0]);
  const float exponent = *static_cast<const float*>(x[1]);
  if (strides[0] == 1 && strides[1] == 0 && exponent == 2) {
    return SquareFloats(base, static_cast<float*>(out), n);
  }
  if (strides[0] == 1 && strides[1] == 0 && exponent == 3) {
    return CubeFloats(base, static_cast<float*>(out), n);
  }
  ForEachChunk<float, float, 2>(
      x, strides, out, n, [&](const float* const* a, float* result, int64_t count) {
        float buffers[2][kElementwiseChunk];
        const float* const bases = Repeated(a[0], strides[0], count, buffers[0]);
        const float* const exponents = Repeated(a[1], strides[1], count, buffers[1]);
        if (CountProducts(exponents, count) == 0) {
          return ApplyElementary(Elementary2::kPow, bases, exponents, result, count);
        }
        // The result may overwrite an operand.
        float powers[kElementwiseChunk];
        ApplyElementary(Elementary2::kPow, bases, exponents, powers, count);
        for (int64_t i = 0; i < count; ++i) {
          if (exponents[i] == 2) powers[i] = bases[i] * bases[i];
          if (exponents[i] == 3) powers[i] = CubeOf(bases[i]);
        }
        std::copy_n(powers, count, result);
      });
}

}  // namespace

void Register(Registry& registry) {
  Define(registry, "Pow",
         "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
         "Returns x to the power of y element-wise.",
         "Powers of integers wrap around, and a negative exponent is an error, unless the output "
         "has no elements. A negative real number has NaN as its power by a number that is not an "
         "integer.");
  RegisterReal<FloatPowerLoop, RealLoop<double, Elementary2::kPow>>(registry, "Pow");
  RegisterBinaryKernels<ComplexPower, OwnType>(registry, "Pow", ComplexTypes());
  ForEachType(SignedIntegerTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("Pow", MakeFunctionKernel<PowerOfIntegers<T>>).template Type<T>("T");
  });

  constexpr absl::string_view kLogTypes =
      "T: {half, bfloat16, float, double, complex64, complex128}";
  Define(registry, "Xlogy", kLogTypes, "Returns x * log(y) element-wise, and 0 where x is 0.",
         "The 0 has the sign of x, even if y is 0 or NaN.");
  RegisterReal<TimesFunctionLoop<float, Elementary::kLog>,
               TimesFunctionLoop<double, Elementary::kLog>>(registry, "Xlogy");
  RegisterBinaryKernels<TimesLog, OwnType>(registry, "Xlogy", ComplexTypes());

  Define(registry, "Xlog1py", kLogTypes, "Returns x * log(1 + y) element-wise, and 0 where x is 0.",
         "The 0 has the sign of x, even if y is 0 or NaN.");
  RegisterReal<TimesFunctionLoop<float, Elementary::kLog1p>,
               TimesFunctionLoop<double, Elementary::kLog1p>>(registry, "Xlog1py");
  RegisterBinaryKernels<TimesLog1p, OwnType>(registry, "Xlog1py", ComplexTypes());

  registry.Op("Atan2")
      .Group("math_ops")
      .Input("y: T")
      .Input("x: T")
      .Output("z: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Shape(BroadcastBinaryShape)
      .Doc(R"(Returns the angle of the point (x, y) element-wise.

It is the inverse tangent of y / x in the quadrant of the point, in [-pi, pi]. The inputs are
broadcast to one shape as NumPy does.

y: A tensor.
x: A tensor of the same type.
z: The angles in radians, of the broadcast shape.
T: The type of the inputs and the output.)");
  RegisterReal<RealLoop<float, Elementary2::kAtan2>, RealLoop<double, Elementary2::kAtan2>>(
      registry, "Atan2");

  registry.Op("NextAfter")
      .Group("math_ops")
      .Input("x1: T")
      .Input("x2: T")
      .Output("output: T")
      .Attr("T: {double, float} = DT_FLOAT")
      .Shape(BroadcastBinaryShape)
      .Doc(R"(Returns the next number of the type after x1 towards x2 element-wise.

The result is x2 if the numbers are equal, and NaN if either number is NaN. The inputs are broadcast
to one shape as NumPy does.

x1: A tensor.
x2: A tensor of the same type.
output: The numbers, of the broadcast shape.
T: The type of the inputs and the output.)");
  RegisterReal<NextAfterLoop<float>, NextAfterLoop<double>>(registry, "NextAfter", false);
}

}  // namespace gradflow::power
