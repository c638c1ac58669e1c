// Neg, Abs, Sign, Square, Sqrt, Rsqrt, Reciprocal and Inv.
#include <cmath>
#include <complex>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_simd.h"

namespace gradflow::unary {
namespace {

// Integers are computed as unsigned integers (WrappingType), which do not overflow.
struct Negate {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0u - x);
    } else {
      return -x;
    }
  }
};

struct SquareOf {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(1u * x * x);
    } else {
      return x * x;
    }
  }
};

struct AbsoluteValue {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? static_cast<T>(0u - static_cast<std::make_unsigned_t<T>>(x)) : x;
    } else {
      return std::abs(x);
    }
  }
};

struct SignOf {
  template <typename T>
  T operator()(T x) const {
    if constexpr (kIsComplex<T>) {
      const auto magnitude = std::abs(x);
      return magnitude == 0 ? T(0) : x / magnitude;
    } else {
      // This form compiles without branches. NaN stays NaN.
      const T sign = static_cast<T>((x > 0) - (x < 0));
      return x != x ? x : sign;
    }
  }
};

struct ComplexSquareRoot {
  static constexpr double kNanoseconds = 10;
  template <typename T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

template <typename T>
void SquareRootLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  SquareRoots(static_cast<const T*>(x[0]), static_cast<T*>(out), n);
}

struct ReciprocalSquareRoot {
  static constexpr double kNanoseconds = 4;
  template <typename T>
  T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};

struct ReciprocalOf {
  static constexpr double kNanoseconds = 1;
  template <typename T>
  T operator()(T x) const {
    return T(1) / x;
  }
};

using ContinuousTypes = ConcatTypes<FloatingTypes, ComplexTypes>::type;

void RegisterRoots(Registry& registry) {
  registry.Op("Sqrt")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns the square root of x element-wise.

The root of a negative real number is NaN. The root of a complex number has a nonnegative real part.

x: A tensor.
y: The roots, of the shape of `x`.
T: The type of both.)");
  registry.Kernel("Sqrt", MakeUnaryKernel<SquareRootLoop<float>, sizeof(float), 1000>)
      .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry.Kernel("Sqrt", MakeUnaryKernel<SquareRootLoop<double>, sizeof(double), 2000>)
      .Types("T", {DT_DOUBLE});
  RegisterUnaryKernels<ComplexSquareRoot, OwnType>(registry, "Sqrt", ComplexTypes());

  registry.Op("Rsqrt")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns 1 / sqrt(x) element-wise.

Both operations round. The result is an infinity for zero and NaN for negative real numbers.

x: A tensor.
y: The reciprocals, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<ReciprocalSquareRoot, OwnType>(registry, "Rsqrt", ContinuousTypes());
}

// Registers Reciprocal under its current or its former name.
void RegisterReciprocal(Registry& registry, absl::string_view op) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
          "complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(
          absl::StrCat("Returns 1 / x element-wise", op == "Inv" ? ", as Reciprocal does" : "", R"(.

The reciprocal of a zero is an infinity with the sign of the zero. As in TensorFlow, there are no
kernels for integers.

x: A tensor.
y: The reciprocals, of the shape of `x`.
T: The type of both.)"));
  RegisterUnaryKernels<ReciprocalOf, OwnType>(registry, op, ContinuousTypes());
}

}  // namespace

void Register(Registry& registry) {
  using SignedTypes = ConcatTypes<FloatingTypes, SignedIntegerTypes>::type;
  using SignedOrComplexTypes = ConcatTypes<SignedTypes, ComplexTypes>::type;
  registry.Op("Neg")
      .Group("math_ops")
      .Alias("Negate")
      .Input("x: T")
      .Output("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
          "complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns -x element-wise.

The smallest integer, whose negative is not in its type, is unchanged.

x: A tensor.
y: The negatives, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<Negate, WrappingType>(registry, "Neg", SignedOrComplexTypes());

  registry.Op("Abs")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns the absolute value of x element-wise.

The smallest integer, whose absolute value is not in its type, is unchanged.

x: A tensor of real numbers.
y: The absolute values, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<AbsoluteValue, OwnType>(registry, "Abs", SignedTypes());

  registry.Op("Sign")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
          "complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns the sign of x element-wise: -1, 0 or 1.

The sign of a complex number is x / |x|, or 0 if x is 0. NaN stays NaN.

x: A tensor.
y: The signs, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<SignOf, OwnType>(registry, "Sign", SignedOrComplexTypes());

  registry.Op("Square")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
          "uint8, uint16, uint32, "
          "uint64, complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns x * x element-wise.

Integers wrap around.

x: A tensor.
y: The squares, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<SquareOf, WrappingType>(registry, "Square", NumberTypes());

  RegisterRoots(registry);
  RegisterReciprocal(registry, "Reciprocal");
  RegisterReciprocal(registry, "Inv");
}

}  // namespace gradflow::unary
