// Neg, Abs, Square, Sqrt and Rsqrt.
#include <cmath>
#include <complex>
#include <type_traits>

#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/elementwise.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

// Integers come as unsigned ones (WrappingType), in which nothing overflows.
struct Negate {
  static constexpr double kNanoseconds = kCheapNanoseconds;
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
  static constexpr double kNanoseconds = kCheapNanoseconds;
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
  static constexpr double kNanoseconds = kCheapNanoseconds;
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? static_cast<T>(0u - static_cast<std::make_unsigned_t<T>>(x)) : x;
    } else {
      return std::abs(x);
    }
  }
};

struct SquareRoot {
  static constexpr double kNanoseconds = 2;
  template <typename T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

struct ReciprocalSquareRoot {
  static constexpr double kNanoseconds = 4;
  template <typename T>
  T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};

void RegisterRoots(Registry& registry) {
  using Types = ConcatTypes<FloatingTypes, ComplexTypes>::type;
  registry.Op("Sqrt")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(The square root of x, element by element.

Of a negative real number it is NaN; of a complex number, the root whose real part is not negative.

x: A tensor.
y: The roots, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<SquareRoot, OwnType>(registry, "Sqrt", Types());

  registry.Op("Rsqrt")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(One divided by the square root of x, element by element.

Both operations round, as in 1 / sqrt(x). Of zero it is an infinity, of a negative real number NaN.

x: A tensor.
y: The reciprocals, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<ReciprocalSquareRoot, OwnType>(registry, "Rsqrt", Types());
}

}  // namespace

void RegisterUnary(Registry& registry) {
  registry.Op("Neg")
      .Group("math_ops")
      .Alias("Negate")
      .Input("x: T")
      .Output("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
          "complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(The negative -x, element by element.

The least integer, which has no negative in its type, stays what it is.

x: A tensor.
y: The negatives, of the shape of `x`.
T: The type of both.)");
  using SignedTypes =
      ConcatTypes<ConcatTypes<FloatingTypes, SignedIntegerTypes>::type, ComplexTypes>::type;
  RegisterUnaryKernels<Negate, WrappingType>(registry, "Neg", SignedTypes());

  registry.Op("Abs")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64}")
      .Shape(UnchangedShape)
      .Doc(R"(The absolute value of x, element by element.

The least integer, whose absolute value is not in its type, stays what it is.

x: A tensor of real numbers.
y: The absolute values, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<AbsoluteValue, OwnType>(
      registry, "Abs", ConcatTypes<FloatingTypes, SignedIntegerTypes>::type());

  registry.Op("Square")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
          "uint8, uint16, uint32, "
          "uint64, complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(R"(The square x * x, element by element.

Integers wrap around.

x: A tensor.
y: The squares, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<SquareOf, WrappingType>(registry, "Square", NumberTypes());

  RegisterRoots(registry);
}

}  // namespace gradflow
