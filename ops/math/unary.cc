// Neg, Abs, Square, Sqrt, Rsqrt and Floor.
#include <cmath>
#include <complex>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::unary {
namespace {

// Integers are computed as unsigned integers (see WrappingType), which do not overflow.
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

struct RoundDown {
  static constexpr double kNanoseconds = kCheapNanoseconds;
  template <typename T>
  T operator()(T x) const {
    return std::floor(x);
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
      .Doc(R"(Returns the square root of x element-wise.

The root of a negative real number is NaN; that of a complex number has a nonnegative real part.

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
      .Doc(R"(Returns 1 / sqrt(x) element-wise.

Both operations round. The result is an infinity for zero and NaN for negative real numbers.

x: A tensor.
y: The reciprocals, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<ReciprocalSquareRoot, OwnType>(registry, "Rsqrt", Types());
}

}  // namespace

void Register(Registry& registry) {
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
  using SignedTypes =
      ConcatTypes<ConcatTypes<FloatingTypes, SignedIntegerTypes>::type, ComplexTypes>::type;
  RegisterUnaryKernels<Negate, WrappingType>(registry, "Neg", SignedTypes());

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
      .Doc(R"(Returns x * x element-wise.

Integers wrap around.

x: A tensor.
y: The squares, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<SquareOf, WrappingType>(registry, "Square", NumberTypes());

  RegisterRoots(registry);

  registry.Op("Floor")
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Shape(UnchangedShape)
      .Doc(R"(Returns the largest integer not greater than x element-wise.

Zeros keep their sign; infinities and NaN are unchanged.

x: A tensor.
y: The integers, of the shape and type of `x`.
T: The type of both.)");
  RegisterUnaryKernels<RoundDown, OwnType>(registry, "Floor", FloatingTypes());
}

}  // namespace gradflow::unary
