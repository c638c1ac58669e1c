// Gradients of the ops of ops/math. Comments give the derivative where the code does not show it;
// `x` and `y` are the inputs or the result of the op.
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

constexpr double kPi = 3.14159265358979323846;

// ---- Functions of one number ----

// Returns the gradient of x, given x, the result y and the gradient dy of y. x and y are already
// conjugated.
using UnaryGradient = Output (*)(const Scope& s, const Output& x, const Output& y,
                                 const Output& dy);

GradientFunction Unary(UnaryGradient gradient) {
  return [gradient](const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                    std::vector<Output>* dx) {
    const Output x = Conjugate(scope, op.input(0));
    const Output y = Conjugate(scope, op.output(0));
    dx->push_back(gradient(scope, x, y, dy[0]));
    return scope.status();
  };
}

Output Times(const Scope& s, const Output& dy, const Output& slope) {
  return ops::Mul(s, dy, slope);
}
Output Like(const Scope& s, const Output& x, double value) { return Scalar(s, x.type(), value); }
// 1 - x^2, and 1 + x^2.
Output OneMinusSquare(const Scope& s, const Output& x) {
  return ops::Sub(s, Like(s, x, 1), ops::Square(s, x));
}
Output OnePlusSquare(const Scope& s, const Output& x) {
  return ops::Add(s, Like(s, x, 1), ops::Square(s, x));
}

// f(x) / x for a function f with f(0) = 0 and slope 0.5 at 0.
Output OverX(const Scope& s, const Output& x, const Output& f) {
  const Output is_zero = ops::Equal(s, x, Like(s, x, 0));
  const Output safe = ops::SelectV2(s, is_zero, ops::OnesLike(s, x), x);
  return ops::SelectV2(s, is_zero, Like(s, x, 0.5), ops::Div(s, f, safe));
}

struct UnaryRow {
  const char* op;
  UnaryGradient gradient;
};

// clang-format off
const UnaryRow kUnary[] = {
    {"Abs", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Sign(s, x)); }},
    {"Acos", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Neg(s, ops::Div(s, dy, ops::Sqrt(s, OneMinusSquare(s, x)))); }},
    {"Acosh", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return ops::Div(s, dy, ops::Sinh(s, y)); }},
    {"Asin", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Div(s, dy, ops::Sqrt(s, OneMinusSquare(s, x))); }},
    {"Asinh", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return ops::Div(s, dy, ops::Cosh(s, y)); }},
    {"Atan", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Div(s, dy, OnePlusSquare(s, x)); }},
    {"Atanh", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Div(s, dy, OneMinusSquare(s, x)); }},
    {"BesselI0", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::BesselI1(s, x)); }},
    {"BesselI0e", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Sub(s, ops::BesselI1e(s, x), ops::Mul(s, ops::Sign(s, x), y))); }},
    {"BesselI1", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Sub(s, ops::BesselI0(s, x), OverX(s, x, y))); }},
    {"BesselI1e", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       const Output damping = ops::Add(s, ops::Mul(s, ops::Sign(s, x), y), OverX(s, x, y));
       return Times(s, dy, ops::Sub(s, ops::BesselI0e(s, x), damping)); }},
    {"BesselJ0", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Neg(s, Times(s, dy, ops::BesselJ1(s, x))); }},
    {"BesselJ1", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Sub(s, ops::BesselJ0(s, x), OverX(s, x, y))); }},
    {"BesselK0", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Neg(s, Times(s, dy, ops::BesselK1(s, x))); }},
    {"BesselK0e", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Sub(s, y, ops::BesselK1e(s, x))); }},
    {"BesselK1", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       return ops::Neg(s, Times(s, dy, ops::Add(s, ops::BesselK0(s, x), ops::Div(s, y, x)))); }},
    {"BesselK1e", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       const Output slope = ops::Sub(s, Like(s, x, 1), ops::Reciprocal(s, x));
       return Times(s, dy, ops::Sub(s, ops::Mul(s, y, slope), ops::BesselK0e(s, x))); }},
    {"BesselY0", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Neg(s, Times(s, dy, ops::BesselY1(s, x))); }},
    {"BesselY1", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Sub(s, ops::BesselY0(s, x), ops::Div(s, y, x))); }},
    {"Cos", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Neg(s, Times(s, dy, ops::Sin(s, x))); }},
    {"Cosh", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Sinh(s, x)); }},
    {"Dawsn", [](const Scope& s, const Output& x, const Output& y, const Output& dy) -> Output {
       const Output product = ops::Mul(s, Like(s, x, 2), ops::Mul(s, x, y));
       return Times(s, dy, ops::Sub(s, Like(s, x, 1), product)); }},
    {"Digamma", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Polygamma(s, Like(s, x, 1), x)); }},
    {"Erf", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Mul(s, Like(s, x, 2 / std::sqrt(kPi)),
                                    ops::Exp(s, ops::Neg(s, ops::Square(s, x))))); }},
    {"Erfc", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Mul(s, Like(s, x, -2 / std::sqrt(kPi)),
                                    ops::Exp(s, ops::Neg(s, ops::Square(s, x))))); }},
    {"Erfinv", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Mul(s, Like(s, y, std::sqrt(kPi) / 2),
                                    ops::Exp(s, ops::Square(s, y)))); }},
    {"Exp", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, y); }},
    {"Expm1", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Exp(s, x)); }},
    {"Expint", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Div(s, ops::Exp(s, x), x)); }},
    {"FresnelCos", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Cos(s, ops::Mul(s, Like(s, x, kPi / 2), ops::Square(s, x)))); }},
    {"FresnelSin", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Sin(s, ops::Mul(s, Like(s, x, kPi / 2), ops::Square(s, x)))); }},
    {"Inv", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return ops::Neg(s, Times(s, dy, ops::Square(s, y))); }},
    {"Lgamma", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Digamma(s, x)); }},
    {"Log", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Div(s, dy, x); }},
    {"Log1p", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Div(s, dy, ops::Add(s, Like(s, x, 1), x)); }},
    {"Ndtri", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Mul(s, Like(s, y, std::sqrt(2 * kPi)),
                                    ops::Exp(s, ops::Mul(s, Like(s, y, 0.5), ops::Square(s, y))))); }},
    {"Neg", [](const Scope& s, const Output&, const Output&, const Output& dy) -> Output {
       return ops::Neg(s, dy); }},
    {"Reciprocal", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return ops::Neg(s, Times(s, dy, ops::Square(s, y))); }},
    {"Rsqrt", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return Times(s, ops::Mul(s, Like(s, y, -0.5), dy), ops::Mul(s, y, ops::Square(s, y))); }},
    {"Sigmoid", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, ops::Mul(s, y, ops::Sub(s, Like(s, y, 1), y))); }},
    {"Sin", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Cos(s, x)); }},
    {"Sinh", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Cosh(s, x)); }},
    {"Spence", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       // log(x) / (1 - x), which is -1 at 1.
       const Output one = Like(s, x, 1);
       const Output slope = ops::Div(s, ops::Log(s, x), ops::Sub(s, one, x));
       return Times(s, dy, ops::SelectV2(s, ops::Equal(s, x, one), ops::Neg(s, ops::OnesLike(s, x)), slope)); }},
    {"Sqrt", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return ops::Div(s, ops::Mul(s, Like(s, y, 0.5), dy), y); }},
    {"Square", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return Times(s, dy, ops::Mul(s, Like(s, x, 2), x)); }},
    {"Tan", [](const Scope& s, const Output& x, const Output&, const Output& dy) -> Output {
       return ops::Div(s, dy, ops::Square(s, ops::Cos(s, x))); }},
    {"Tanh", [](const Scope& s, const Output&, const Output& y, const Output& dy) -> Output {
       return Times(s, dy, OneMinusSquare(s, y)); }},
};
// clang-format on

// ---- Complex numbers ----

// The sign s = z / |z| of a complex number z changes with the angle of z, but not with |z|:
//   dz = (dy - s Re(conj(s) dy)) / |z|, and 0 where z is 0
absl::Status GradientOfSign(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Output x = op.input(0);
  const DataType dtype = BaseType(x.type());
  if (!DataTypeIsComplex(dtype)) {
    dx->push_back(ops::ZerosLike(scope, x));
    return scope.status();
  }
  const Output s = op.output(0);
  const Output along = RealPart(scope, ops::Mul(scope, ops::Conj(scope, s), dy[0]));
  const Output across = ops::Sub(scope, dy[0], ops::Mul(scope, s, along));
  const Output size = ops::ComplexAbs(scope, x, ops::ComplexAbs::Tout(PartType(dtype)));
  dx->push_back(ops::DivNoNan(scope, across, ops::Cast(scope, size, dtype)));
  return scope.status();
}
absl::Status GradientOfConj(const Scope& scope, const Operation&, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  dx->push_back(ops::Conj(scope, dy[0]));
  return scope.status();
}
absl::Status GradientOfReal(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  dx->push_back(ops::Complex(scope, dy[0], Scalar(scope, dy[0].type(), 0),
                             ops::Complex::Tout(op.input_type(0))));
  return scope.status();
}
absl::Status GradientOfImag(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  dx->push_back(ops::Complex(scope, Scalar(scope, dy[0].type(), 0), dy[0],
                             ops::Complex::Tout(op.input_type(0))));
  return scope.status();
}
absl::Status GradientOfComplex(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  const DataType part = op.input_type(0);
  return Broadcast(scope, op, ops::Real(scope, dy[0], ops::Real::Tout(part)),
                   ops::Imag(scope, dy[0], ops::Imag::Tout(part)), dx);
}
absl::Status GradientOfComplexAbs(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output g = ops::Complex(scope, dy[0], Scalar(scope, dy[0].type(), 0),
                                ops::Complex::Tout(op.input_type(0)));
  dx->push_back(ops::Mul(scope, g, ops::Sign(scope, op.input(0))));
  return scope.status();
}
// The angle of z = x + iy has the derivatives (-y, x) / |z|^2 = i z / |z|^2 = i / conj(z).
absl::Status GradientOfAngle(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  const Output ig = ops::Complex(scope, Scalar(scope, dy[0].type(), 0), dy[0],
                                 ops::Complex::Tout(op.input_type(0)));
  dx->push_back(ops::Div(scope, ig, ops::Conj(scope, op.input(0))));
  return scope.status();
}

absl::Status GradientOfCast(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const auto is_continuous = [](DataType dtype) {
    return DataTypeIsFloating(BaseType(dtype)) || DataTypeIsComplex(BaseType(dtype));
  };
  const bool differentiable = is_continuous(op.input_type(0)) && is_continuous(op.output_type(0));
  dx->push_back(differentiable ? Output(ops::Cast(scope, dy[0], BaseType(op.input_type(0))))
                               : NoGradient());
  return scope.status();
}

// ---- Functions of two numbers ----

absl::Status GradientOfAdd(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  return Broadcast(scope, op, dy[0], dy[0], dx);
}
absl::Status GradientOfSub(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  return Broadcast(scope, op, dy[0], ops::Neg(scope, dy[0]), dx);
}
absl::Status GradientOfMul(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  return Broadcast(scope, op, ops::Mul(scope, dy[0], Conjugate(scope, op.input(1))),
                   ops::Mul(scope, Conjugate(scope, op.input(0)), dy[0]), dx);
}
// dx = dy / y; the derivative of x / y with respect to y is -(x / y) / y.
template <typename Divide>
absl::Status GradientOfDivision(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = Conjugate(scope, op.input(0));
  const Output y = Conjugate(scope, op.input(1));
  const Output quotient = Divide(scope, Divide(scope, ops::Neg(scope, x), y), y);
  return Broadcast(scope, op, Divide(scope, dy[0], y), ops::Mul(scope, dy[0], quotient), dx);
}
absl::Status GradientOfMulNoNan(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  return Broadcast(scope, op, ops::MulNoNan(scope, dy[0], Conjugate(scope, op.input(1))),
                   ops::MulNoNan(scope, Conjugate(scope, op.input(0)), dy[0]), dx);
}
// z = x - floor(x / y) * y.
absl::Status GradientOfFloorMod(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output quotient = ops::FloorDiv(scope, op.input(0), op.input(1));
  return Broadcast(scope, op, dy[0], ops::Neg(scope, ops::Mul(scope, dy[0], quotient)), dx);
}
// z = x - truncate(x / y) * y. The quotient (x - z) / y is an integer except for rounding.
absl::Status GradientOfTruncateMod(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output multiple = ops::Sub(scope, op.input(0), op.output(0));
  const Output quotient = ops::Rint(scope, ops::Div(scope, multiple, op.input(1)));
  return Broadcast(scope, op, dy[0], ops::Neg(scope, ops::Mul(scope, dy[0], quotient)), dx);
}
// For complex numbers the op is |x - y|^2, which is real: the imaginary part of dy does not count.
absl::Status GradientOfSquaredDifference(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output difference = ops::Sub(scope, op.input(0), op.input(1));
  const Output two_dy = ops::Mul(scope, Scalar(scope, dy[0].type(), 2), RealPart(scope, dy[0]));
  const Output g = ops::Mul(scope, two_dy, difference);
  return Broadcast(scope, op, g, ops::Neg(scope, g), dx);
}

// Passes dy to x where `chosen` is true, and to y elsewhere.
absl::Status Choose(const Scope& scope, const Operation& op, const Output& chosen, const Output& dy,
                    std::vector<Output>* dx) {
  const Output zero = ops::ZerosLike(scope, dy);
  return Broadcast(scope, op, ops::SelectV2(scope, chosen, dy, zero),
                   ops::SelectV2(scope, chosen, zero, dy), dx);
}
absl::Status GradientOfMaximum(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  return Choose(scope, op, ops::GreaterEqual(scope, op.input(0), op.input(1)), dy[0], dx);
}
absl::Status GradientOfMinimum(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  return Choose(scope, op, ops::LessEqual(scope, op.input(0), op.input(1)), dy[0], dx);
}

// With the gradient g of the result, the gradient of x is g * y * x^(y - 1), and the gradient of y
// is g * x^y * log(x). The gradient of y is 0 where a real x is not positive or a complex x is 0.
absl::Status GradientOfPow(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  const Output x = Conjugate(scope, op.input(0));
  const Output y = Conjugate(scope, op.input(1));
  const Output z = Conjugate(scope, op.output(0));
  const Output zero = Scalar(scope, x.type(), 0);
  const Output one = Scalar(scope, x.type(), 1);
  const Output power = ops::Pow(scope, x, ops::Sub(scope, y, one));
  const Output has_log = DataTypeIsComplex(BaseType(x.type()))
                             ? Output(ops::NotEqual(scope, x, zero))
                             : Output(ops::Greater(scope, x, zero));
  const Output safe_x = ops::SelectV2(scope, has_log, x, one);
  const Output log_x = ops::SelectV2(scope, has_log, ops::Log(scope, safe_x), zero);
  return Broadcast(scope, op, ops::Mul(scope, dy[0], ops::MulNoNan(scope, power, y)),
                   ops::Mul(scope, dy[0], ops::Mul(scope, z, log_x)), dx);
}
// atan2(y, x) has the derivatives (x, -y) / (x^2 + y^2).
absl::Status GradientOfAtan2(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  const Output y = op.input(0);
  const Output x = op.input(1);
  const Output g =
      ops::Div(scope, dy[0], ops::Add(scope, ops::Square(scope, x), ops::Square(scope, y)));
  return Broadcast(scope, op, ops::Mul(scope, x, g), ops::Neg(scope, ops::Mul(scope, y, g)), dx);
}

// 1 where x is not 0, otherwise 0.
Output IsNotZero(const Scope& scope, const Output& x) {
  return ops::Cast(scope, ops::NotEqual(scope, x, Scalar(scope, x.type(), 0)), BaseType(x.type()));
}
// x * log(y), 0 where x is 0.
absl::Status GradientOfXlogy(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output y = op.input(1);
  const Output partial_x = ops::Xlogy(scope, IsNotZero(scope, x), y);
  return Broadcast(scope, op, ops::Mul(scope, Conjugate(scope, partial_x), dy[0]),
                   ops::Mul(scope, Conjugate(scope, ops::Xdivy(scope, x, y)), dy[0]), dx);
}
// x * log1p(y), 0 where x is 0.
absl::Status GradientOfXlog1py(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output y = op.input(1);
  const Output partial_x = ops::Xlog1py(scope, IsNotZero(scope, x), y);
  const Output partial_y = ops::Xdivy(scope, x, ops::Add(scope, y, Scalar(scope, y.type(), 1)));
  return Broadcast(scope, op, ops::Mul(scope, Conjugate(scope, partial_x), dy[0]),
                   ops::Mul(scope, Conjugate(scope, partial_y), dy[0]), dx);
}
// x / y, 0 where x is 0.
absl::Status GradientOfXdivy(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output y = op.input(1);
  const Output partial_x = ops::Xdivy(scope, IsNotZero(scope, x), y);
  const Output partial_y = ops::Xdivy(scope, ops::Neg(scope, x), ops::Square(scope, y));
  return Broadcast(scope, op, ops::Mul(scope, Conjugate(scope, partial_x), dy[0]),
                   ops::Mul(scope, Conjugate(scope, partial_y), dy[0]), dx);
}

// ---- Special functions of several numbers ----
//
// Many have a known derivative only with respect to the last input.

// The derivative of P(a, x) with respect to x: the density of the gamma distribution.
Output GammaDensity(const Scope& scope, const Output& a, const Output& x) {
  const Output one = Scalar(scope, a.type(), 1);
  const Output log_power = ops::Xlogy(scope, ops::Sub(scope, a, one), x);
  return ops::Exp(scope, ops::Sub(scope, ops::Sub(scope, log_power, x), ops::Lgamma(scope, a)));
}
absl::Status GradientOfIgamma(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output a = op.input(0);
  const Output x = op.input(1);
  return Broadcast(scope, op, ops::Mul(scope, dy[0], ops::IgammaGradA(scope, a, x)),
                   ops::Mul(scope, dy[0], GammaDensity(scope, a, x)), dx);
}
absl::Status GradientOfIgammac(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  return GradientOfIgamma(scope, op, {ops::Neg(scope, dy[0])}, dx);
}
absl::Status GradientOfZeta(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output q = op.input(1);
  const Output next = ops::Zeta(scope, ops::Add(scope, x, Scalar(scope, x.type(), 1)), q);
  return Broadcast(scope, op, UnknownGradient(),
                   ops::Neg(scope, ops::Mul(scope, dy[0], ops::Mul(scope, x, next))), dx);
}
absl::Status GradientOfPolygamma(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output a = op.input(0);
  const Output x = op.input(1);
  const Output next = ops::Polygamma(scope, ops::Add(scope, a, Scalar(scope, a.type(), 1)), x);
  return Broadcast(scope, op, UnknownGradient(), ops::Mul(scope, dy[0], next), dx);
}
// The derivative with respect to x: the density of the beta distribution. a and b have the shape of
// x or are scalars.
absl::Status GradientOfBetainc(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output a = op.input(0);
  const Output b = op.input(1);
  const Output x = op.input(2);
  const Output one = Scalar(scope, x.type(), 1);
  const Output log_beta =
      ops::Sub(scope, ops::Add(scope, ops::Lgamma(scope, a), ops::Lgamma(scope, b)),
               ops::Lgamma(scope, ops::Add(scope, a, b)));
  const Output log_x = ops::Xlogy(scope, ops::Sub(scope, a, one), x);
  const Output log_rest = ops::Xlog1py(scope, ops::Sub(scope, b, one), ops::Neg(scope, x));
  const Output density =
      ops::Exp(scope, ops::Sub(scope, ops::Add(scope, log_x, log_rest), log_beta));
  const Output g = ops::Mul(scope, dy[0], density);
  *dx = {UnknownGradient(), UnknownGradient(), SumToShapeOf(scope, g, x, op.output(0))};
  return scope.status();
}
absl::Status GradientOfNextAfter(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  return Broadcast(scope, op, dy[0], NoGradient(), dx);
}

// ---- Gradient ops of functions of one number, linear in their second input ----

// SigmoidGrad(y, g) = g y (1 - y).
absl::Status GradientOfSigmoidGrad(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output y = Conjugate(scope, op.input(0));
  const Output g = Conjugate(scope, op.input(1));
  const Output slope =
      ops::Sub(scope, Scalar(scope, y.type(), 1), ops::Mul(scope, Scalar(scope, y.type(), 2), y));
  *dx = {ops::Mul(scope, dy[0], ops::Mul(scope, g, slope)), ops::SigmoidGrad(scope, y, dy[0])};
  return scope.status();
}
// TanhGrad(y, g) = g (1 - y^2).
absl::Status GradientOfTanhGrad(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output y = Conjugate(scope, op.input(0));
  const Output g = Conjugate(scope, op.input(1));
  const Output slope = ops::Mul(scope, Scalar(scope, y.type(), -2), ops::Mul(scope, g, y));
  *dx = {ops::Mul(scope, dy[0], slope), ops::TanhGrad(scope, y, dy[0])};
  return scope.status();
}
// The following three ops are functions of conj(y), so the gradient of y contains conj(dy).

// ReciprocalGrad(y, g) = -g conj(y)^2.
absl::Status GradientOfReciprocalGrad(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output y = Conjugate(scope, op.input(0));
  const Output g = op.input(1);
  const Output slope = ops::Mul(scope, Scalar(scope, y.type(), -2), ops::Mul(scope, g, y));
  *dx = {ops::Mul(scope, Conjugate(scope, dy[0]), slope), ops::ReciprocalGrad(scope, y, dy[0])};
  return scope.status();
}
// SqrtGrad(y, g) = g / (2 conj(y)).
absl::Status GradientOfSqrtGrad(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output y = op.input(0);
  const Output z = op.output(0);
  const Output quotient = ops::Div(scope, dy[0], y);
  *dx = {ops::Neg(scope, ops::Mul(scope, Conjugate(scope, quotient), z)),
         ops::Mul(scope, Scalar(scope, y.type(), 0.5), quotient)};
  return scope.status();
}
// RsqrtGrad(y, g) = -g conj(y)^3 / 2.
absl::Status GradientOfRsqrtGrad(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output y = Conjugate(scope, op.input(0));
  const Output g = op.input(1);
  const Output slope =
      ops::Mul(scope, Scalar(scope, y.type(), -1.5), ops::Mul(scope, g, ops::Square(scope, y)));
  *dx = {ops::Mul(scope, Conjugate(scope, dy[0]), slope), ops::RsqrtGrad(scope, y, dy[0])};
  return scope.status();
}

absl::Status GradientOfSelect(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output zero = ops::ZerosLike(scope, dy[0]);
  *dx = {NoGradient(), ops::Select(scope, op.input(0), dy[0], zero),
         ops::Select(scope, op.input(0), zero, dy[0])};
  return scope.status();
}
absl::Status GradientOfSelectV2(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output zero = ops::ZerosLike(scope, dy[0]);
  const Output z = op.output(0);
  *dx = {NoGradient(),
         SumToShapeOf(scope, ops::SelectV2(scope, op.input(0), dy[0], zero), op.input(1), z),
         SumToShapeOf(scope, ops::SelectV2(scope, op.input(0), zero, dy[0]), op.input(2), z)};
  return scope.status();
}
// Where the value is below min or above max, the bound gets the gradient. For complex numbers, only
// the real parts count.
absl::Status GradientOfClipByValue(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  const auto real = [&](int input) -> Output {
    const Output x = op.input(input);
    if (!DataTypeIsComplex(BaseType(x.type()))) return x;
    return ops::Real(scope, x, ops::Real::Tout(PartType(x.type())));
  };
  const Output x = real(0);
  const Output g = RealPart(scope, dy[0]);
  const Output zero = ops::ZerosLike(scope, g);
  const Output is_below = ops::Less(scope, x, real(1));
  const Output is_above = ops::Greater(scope, x, real(2));
  const Output is_out = ops::LogicalOr(scope, is_below, is_above);
  *dx = {ops::SelectV2(scope, is_out, zero, g),
         SumToShapeOf(scope, ops::SelectV2(scope, is_below, g, zero), op.input(1), x),
         SumToShapeOf(scope, ops::SelectV2(scope, is_above, g, zero), op.input(2), x)};
  return scope.status();
}

// ---- Sums and other reductions ----

absl::Status GradientOfAddN(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  dx->assign(op.num_inputs(), dy[0]);
  return scope.status();
}

// The shape of a reduction's input, with 1 for each reduced dimension.
Output KeptShape(const Scope& scope, const Operation& op) {
  const Output x = op.input(0);
  const Output shape = ops::Shape(scope, x);
  const Output rank = ops::Rank(scope, x);
  const Output axes = ops::Reshape(
      scope,
      ops::FloorMod(scope, ops::Add(scope, ops::Cast(scope, op.input(1), DT_INT32), rank), rank),
      Vector(scope, {-1}));
  // DynamicStitch overwrites the sizes at the axes with ones.
  const Output all = ops::Range(scope, 0, rank, 1);
  const Output ones = ops::OnesLike(scope, axes);
  return ops::DynamicStitch(scope, {all, axes}, {shape, ones});
}
// Broadcasts the result of a reduction, or a value of its shape, to the shape of the input.
Output Spread(const Scope& scope, const Operation& op, const Output& value) {
  return ops::BroadcastTo(scope, ops::Reshape(scope, value, KeptShape(scope, op)),
                          ops::Shape(scope, op.input(0)));
}

absl::Status GradientOfSum(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  *dx = {Spread(scope, op, dy[0]), NoGradient()};
  return scope.status();
}
absl::Status GradientOfMean(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const DataType dtype = BaseType(op.input_type(0));
  // The number of elements per result may exceed the largest half.
  const DataType wide = dtype == DT_HALF || dtype == DT_BFLOAT16 ? DT_FLOAT : dtype;
  const auto size = [&](const Output& tensor) -> Output {
    return ops::Size(scope, tensor, ops::Size::OutType(DT_INT64));
  };
  const Output one = ops::Const(scope, static_cast<int64_t>(1));
  const Output count =
      ops::FloorDiv(scope, size(op.input(0)), ops::Maximum(scope, size(op.output(0)), one));
  const Output g = wide == dtype ? dy[0] : Output(ops::Cast(scope, dy[0], wide));
  const Output share = ops::Div(scope, g, ops::Cast(scope, count, wide));
  const Output narrow = wide == dtype ? share : Output(ops::Cast(scope, share, dtype));
  *dx = {Spread(scope, op, narrow), NoGradient()};
  return scope.status();
}
// Elements that are equal to the result share the gradient.
absl::Status GradientOfMinOrMax(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output kept = KeptShape(scope, op);
  const Output y = ops::Reshape(scope, op.output(0), kept);
  const Output is_result = ops::Cast(scope, ops::Equal(scope, y, x), BaseType(x.type()));
  const Output count = ops::Reshape(scope, ops::Sum(scope, is_result, op.input(1)), kept);
  const Output g = ops::Reshape(scope, dy[0], kept);
  *dx = {ops::Mul(scope, ops::Div(scope, is_result, count), g), NoGradient()};
  return scope.status();
}
// The derivative is the product of all other elements, computed from the products of the elements
// before and after. This is exact even if elements are 0.
absl::Status GradientOfProd(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output rank = ops::Rank(scope, x);
  const Output axes = ops::Reshape(
      scope,
      ops::FloorMod(scope, ops::Add(scope, ops::Cast(scope, op.input(1), DT_INT32), rank), rank),
      Vector(scope, {-1}));
  const Output others = ops::ListDiff(scope, ops::Range(scope, 0, rank, 1), axes).out;
  const Output order = ops::ConcatV2(scope, {axes, others}, 0);
  const Output shape = ops::Shape(scope, x);
  // Each column holds the reduced elements of one result.
  const Output permuted = ops::Transpose(scope, x, order);
  const Output rows = ops::Prod(scope, ops::GatherV2(scope, shape, axes, 0), 0);
  const Output columns = ops::Prod(scope, ops::GatherV2(scope, shape, others, 0), 0);
  const Output matrix = ops::Reshape(scope, permuted, ops::Pack(scope, {rows, columns}));
  const Output before = ops::Cumprod(scope, matrix, 0, ops::Cumprod::Exclusive(true));
  const Output after = ops::Cumprod(scope, matrix, 0, ops::Cumprod::Exclusive(true).Reverse(true));
  const Output product = ops::Reshape(scope, Conjugate(scope, ops::Mul(scope, before, after)),
                                      ops::Shape(scope, permuted));
  const Output back = ops::Transpose(scope, product, ops::InvertPermutation(scope, order));
  *dx = {ops::Mul(scope, Spread(scope, op, dy[0]), back), NoGradient()};
  return scope.status();
}
// The norm is real: the imaginary part of dy does not count.
absl::Status GradientOfEuclideanNorm(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output kept = KeptShape(scope, op);
  const Output y = ops::Reshape(scope, op.output(0), kept);
  const Output g = ops::Reshape(scope, RealPart(scope, dy[0]), kept);
  *dx = {ops::Mul(scope, op.input(0), ops::DivNoNan(scope, g, y)), NoGradient()};
  return scope.status();
}

// ---- Scans ----

struct ScanAttrs {
  bool exclusive = false;
  bool reverse = false;
};
absl::Status GetScanAttrs(const Operation& op, ScanAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "exclusive", &attrs->exclusive));
  return GetAttr(op, "reverse", &attrs->reverse);
}
absl::Status GradientOfCumsum(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  ScanAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetScanAttrs(op, &attrs));
  *dx = {ops::Cumsum(scope, dy[0], op.input(1),
                     ops::Cumsum::Exclusive(attrs.exclusive).Reverse(!attrs.reverse)),
         NoGradient()};
  return scope.status();
}
absl::Status GradientOfCumprod(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  ScanAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetScanAttrs(op, &attrs));
  const Output products = ops::Mul(scope, Conjugate(scope, op.output(0)), dy[0]);
  const Output sums = ops::Cumsum(scope, products, op.input(1),
                                  ops::Cumsum::Exclusive(attrs.exclusive).Reverse(!attrs.reverse));
  *dx = {ops::Div(scope, sums, Conjugate(scope, op.input(0))), NoGradient()};
  return scope.status();
}

// y_i = log(sum of exp(x_j) over j up to i), so dx_j = sum of dy_i exp(x_j - y_i) over i from j on.
// This is a scan in the other direction in logarithms, separately for positive and negative dy. A
// dy of 0 counts as a small number in both scans. The small numbers cancel in the difference of the
// scans, and the first scan provides the derivative with respect to this dy.
Output CumulativeLogsumexpGradient(const Scope& scope, const ScanAttrs& attrs, const Output& x,
                                   const Output& y, const Output& axis, const Output& dy) {
  const Output zero = ops::ZerosLike(scope, dy);
  const Output minus_infinity = ops::Log(scope, zero);
  const Output is_zero = ops::Equal(scope, dy, zero);
  const Output small = Scalar(scope, dy.type(), dy.type() == DT_DOUBLE ? 0x1p-500 : 0x1p-60);
  // `g` is nonnegative where `is_part` is true.
  const auto scan = [&](const Output& is_part, const Output& g) -> Output {
    const Output safe = ops::SelectV2(scope, is_part, g, ops::OnesLike(scope, g));
    const Output log_g = ops::SelectV2(scope, is_part, ops::Log(scope, safe), minus_infinity);
    // Where y is -infinity, the sum is empty.
    const Output is_empty = ops::Equal(scope, y, minus_infinity);
    const Output difference =
        ops::SelectV2(scope, is_empty, minus_infinity,
                      ops::Sub(scope, log_g, ops::SelectV2(scope, is_empty, zero, y)));
    const Output sums = ops::CumulativeLogsumexp(
        scope, difference, axis,
        ops::CumulativeLogsumexp::Exclusive(attrs.exclusive).Reverse(!attrs.reverse));
    return ops::Exp(scope, ops::Add(scope, sums, x));
  };
  const Output positive = ops::SelectV2(scope, is_zero, ops::Add(scope, dy, small), dy);
  const Output negative = ops::SelectV2(scope, is_zero, small, ops::Neg(scope, dy));
  return ops::Sub(scope, scan(ops::GreaterEqual(scope, dy, zero), positive),
                  scan(ops::LessEqual(scope, dy, zero), negative));
}
absl::Status GradientOfCumulativeLogsumexp(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  ScanAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(GetScanAttrs(op, &attrs));
  const DataType dtype = BaseType(op.input_type(0));
  // Half has too narrow a range for small numbers.
  const DataType wide = dtype == DT_DOUBLE ? DT_DOUBLE : DT_FLOAT;
  const auto cast = [&](const Output& tensor, DataType to) -> Output {
    return BaseType(tensor.type()) == to ? tensor : Output(ops::Cast(scope, tensor, to));
  };
  const Output gradient =
      CumulativeLogsumexpGradient(scope, attrs, cast(op.input(0), wide), cast(op.output(0), wide),
                                  op.input(1), cast(dy[0], wide));
  *dx = {cast(gradient, dtype), NoGradient()};
  return scope.status();
}

// ---- Segments ----

absl::Status GradientOfSegmentSum(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(ops::GatherV2(scope, dy[0], op.input(1), 0));
  return NoGradientForTheRest(scope, op, dx);
}
// Gathers the rows of dy by segment. Negative ids, which the op ignores, give zeros, even if there
// are no segments.
Output GatherRows(const Scope& scope, const Output& dy, const Output& ids) {
  return ops::GatherNd(scope, dy, ops::ExpandDims(scope, ids, -1),
                       ops::GatherNd::BadIndicesPolicy("IGNORE"));
}
absl::Status GradientOfUnsortedSegmentSum(const Scope& scope, const Operation& op,
                                          const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(GatherRows(scope, dy[0], op.input(1)));
  return NoGradientForTheRest(scope, op, dx);
}
// Elements that are equal to the result of their segment share the gradient.
absl::Status GradientOfUnsortedSegmentMinOrMax(const Scope& scope, const Operation& op,
                                               const std::vector<Output>& dy,
                                               std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output results = GatherRows(scope, op.output(0), op.input(1));
  const Output is_result = ops::Cast(scope, ops::Equal(scope, x, results), BaseType(x.type()));
  const Output counts = ops::UnsortedSegmentSum(scope, is_result, op.input(1), op.input(2));
  const Output shares = GatherRows(scope, ops::DivNoNan(scope, dy[0], counts), op.input(1));
  dx->push_back(ops::Mul(scope, is_result, shares));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfSegmentMinOrMax(const Scope& scope, const Operation& op,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.input(0);
  const Output results = ops::GatherV2(scope, op.output(0), op.input(1), 0);
  const Output is_result = ops::Cast(scope, ops::Equal(scope, x, results), BaseType(x.type()));
  const Output counts = ops::SegmentSum(scope, is_result, op.input(1));
  const Output shares = ops::GatherV2(scope, ops::DivNoNan(scope, dy[0], counts), op.input(1), 0);
  *dx = {ops::Mul(scope, is_result, shares), NoGradient()};
  return scope.status();
}
absl::Status GradientOfSegmentMean(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output ones = ops::OnesLike(scope, op.input(0));
  const Output counts = ops::SegmentSum(scope, ones, op.input(1));
  *dx = {ops::GatherV2(scope, ops::DivNoNan(scope, dy[0], counts), op.input(1), 0), NoGradient()};
  return scope.status();
}

// For each element, returns the product of the other elements of its segment. If the segment has no
// zero, this is the product of the segment divided by the element. If the segment has a single
// zero, only the zero has a product that is not 0. If the segment has several zeros, all products
// are 0. `gather` reads the results of segments; `sum` and `prod` compute sums and products over
// segments.
template <typename GatherRows, typename SumRows, typename ProdRows>
Output ProdOfOthers(const Scope& scope, const Output& x, const GatherRows& gather,
                    const SumRows& sum, const ProdRows& prod) {
  const DataType dtype = BaseType(x.type());
  const Output zero = Scalar(scope, dtype, 0);
  const Output is_zero = ops::Equal(scope, x, zero);
  const Output ones = ops::OnesLike(scope, x);
  const Output safe = ops::SelectV2(scope, is_zero, ones, x);
  const Output rest = ops::Div(scope, gather(prod(safe)), safe);
  // The number of zeros among the other elements.
  const Output flag = ops::Cast(scope, is_zero, DT_FLOAT);
  const Output others = ops::Sub(scope, gather(sum(flag)), flag);
  const Output is_alone = ops::Less(scope, others, Scalar(scope, DT_FLOAT, 0.5));
  return ops::SelectV2(scope, is_alone, rest, ops::ZerosLike(scope, x));
}
absl::Status GradientOfSegmentProd(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output ids = op.input(1);
  const auto gather = [&](const Output& rows) -> Output {
    return ops::GatherV2(scope, rows, ids, 0);
  };
  const auto sum = [&](const Output& x) -> Output { return ops::SegmentSum(scope, x, ids); };
  const auto prod = [&](const Output& x) -> Output { return ops::SegmentProd(scope, x, ids); };
  const Output others = ProdOfOthers(scope, op.input(0), gather, sum, prod);
  dx->push_back(ops::Mul(scope, gather(dy[0]), Conjugate(scope, others)));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfUnsortedSegmentProd(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output ids = op.input(1);
  const Output count = op.input(2);
  const auto gather = [&](const Output& rows) -> Output { return GatherRows(scope, rows, ids); };
  const auto sum = [&](const Output& x) -> Output {
    return ops::UnsortedSegmentSum(scope, x, ids, count);
  };
  const auto prod = [&](const Output& x) -> Output {
    return ops::UnsortedSegmentProd(scope, x, ids, count);
  };
  const Output others = ProdOfOthers(scope, op.input(0), gather, sum, prod);
  dx->push_back(ops::Mul(scope, gather(dy[0]), Conjugate(scope, others)));
  return NoGradientForTheRest(scope, op, dx);
}

// The gradient ops of sparse segments are linear in the gradient, so their gradients are the
// forward ops. Version 2 of the gradient ops returns only the rows that have a gradient.
template <typename Forward>
absl::Status GradientOfSparseSegmentGrad(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output num_segments = ops::GatherV2(scope, ops::Shape(scope, op.input(0)), 0, 0);
  dx->push_back(Forward(scope, dy[0], op.input(1), op.input(2), num_segments));
  return NoGradientForTheRest(scope, op, dx);
}
template <typename Forward>
absl::Status GradientOfSparseSegmentGradV2(const Scope& scope, const Operation& op,
                                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output num_segments = ops::GatherV2(scope, ops::Shape(scope, op.input(0)), 0, 0);
  const auto row = [&](const Output& x) -> Output { return ops::ExpandDims(scope, x, 0); };
  const Output positions = ops::LowerBound(scope, row(op.output(1)), row(op.input(1)));
  const Output indices = ops::Reshape(scope, positions, Vector(scope, {-1}));
  dx->push_back(Forward(scope, dy[0], indices, op.input(2), num_segments));
  return NoGradientForTheRest(scope, op, dx);
}

// For ops with the inputs data, indices and segment ids. Gradient is the gradient op, which takes
// the number of rows of the data.
template <typename Gradient>
absl::Status GradientOfSparseSegment(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output shape = ops::Shape(scope, op.input(0));
  const Output rows = ops::Reshape(
      scope, ops::Slice(scope, shape, Vector(scope, {0}), Vector(scope, {1})), Vector(scope, {}));
  dx->push_back(Gradient(scope, dy[0], op.input(1), op.input(2), rows));
  return NoGradientForTheRest(scope, op, dx);
}

// ---- Partitions ----

absl::Status GradientOfDynamicPartition(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output partitions = op.input(1);
  const Output shape = ops::Shape(scope, partitions);
  const Output positions =
      ops::Reshape(scope, ops::Range(scope, 0, ops::Size(scope, partitions), 1), shape);
  const ops::DynamicPartition parts(scope, positions, partitions, op.num_outputs());
  std::vector<Output> gradients;
  for (int i = 0; i < op.num_outputs(); ++i) gradients.push_back(OrZeros(scope, op, i, dy));
  const Output rows = ops::DynamicStitch(scope, parts.outputs, gradients);
  // Every element is in a partition, so the rows cover the whole input.
  *dx = {ops::Reshape(scope, rows, ops::Shape(scope, op.input(0))), NoGradient()};
  return scope.status();
}
absl::Status GradientOfDynamicStitch(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  const int count = op.num_inputs() / 2;
  dx->assign(count, NoGradient());
  for (int i = 0; i < count; ++i) dx->push_back(ops::GatherV2(scope, dy[0], op.input(i), 0));
  return scope.status();
}

}  // namespace
}  // namespace gradients

namespace gradients::math {

void Register(GradientRegistry& registry) {
  for (const UnaryRow& row : kUnary) registry.Register(row.op, Unary(row.gradient));
  registry.Register("Sign", GradientOfSign);
  registry.Register("Conj", GradientOfConj);
  registry.Register("Real", GradientOfReal);
  registry.Register("Imag", GradientOfImag);
  registry.Register("Complex", GradientOfComplex);
  registry.Register("ComplexAbs", GradientOfComplexAbs);
  registry.Register("Angle", GradientOfAngle);
  registry.Register("Cast", GradientOfCast);
  registry.Register("Add", GradientOfAdd);
  registry.Register("AddV2", GradientOfAdd);
  registry.Register("Sub", GradientOfSub);
  registry.Register("Mul", GradientOfMul);
  registry.Register("Div", GradientOfDivision<ops::Div>);
  registry.Register("RealDiv", GradientOfDivision<ops::RealDiv>);
  registry.Register("DivNoNan", GradientOfDivision<ops::DivNoNan>);
  registry.Register("MulNoNan", GradientOfMulNoNan);
  registry.Register("FloorMod", GradientOfFloorMod);
  registry.Register("Mod", GradientOfTruncateMod);
  registry.Register("TruncateMod", GradientOfTruncateMod);
  registry.Register("SquaredDifference", GradientOfSquaredDifference);
  registry.Register("Maximum", GradientOfMaximum);
  registry.Register("Minimum", GradientOfMinimum);
  registry.Register("Pow", GradientOfPow);
  registry.Register("Atan2", GradientOfAtan2);
  registry.Register("Xlogy", GradientOfXlogy);
  registry.Register("Xlog1py", GradientOfXlog1py);
  registry.Register("Xdivy", GradientOfXdivy);
  registry.Register("Select", GradientOfSelect);
  registry.Register("SelectV2", GradientOfSelectV2);
  registry.Register("ClipByValue", GradientOfClipByValue);
  registry.Register("AddN", GradientOfAddN);
  registry.Register("AccumulateNV2", GradientOfAddN);
  registry.Register("Sum", GradientOfSum);
  registry.Register("Mean", GradientOfMean);
  registry.Register("Min", GradientOfMinOrMax);
  registry.Register("Max", GradientOfMinOrMax);
  registry.Register("Prod", GradientOfProd);
  registry.Register("EuclideanNorm", GradientOfEuclideanNorm);
  registry.Register("Cumsum", GradientOfCumsum);
  registry.Register("Cumprod", GradientOfCumprod);
  registry.Register("CumulativeLogsumexp", GradientOfCumulativeLogsumexp);
  registry.Register("Igamma", GradientOfIgamma);
  registry.Register("Igammac", GradientOfIgammac);
  registry.Register("Zeta", GradientOfZeta);
  registry.Register("Polygamma", GradientOfPolygamma);
  registry.Register("Betainc", GradientOfBetainc);
  registry.Register("NextAfter", GradientOfNextAfter);
  registry.Register("SigmoidGrad", GradientOfSigmoidGrad);
  registry.Register("TanhGrad", GradientOfTanhGrad);
  registry.Register("ReciprocalGrad", GradientOfReciprocalGrad);
  registry.Register("InvGrad", GradientOfReciprocalGrad);
  registry.Register("SqrtGrad", GradientOfSqrtGrad);
  registry.Register("RsqrtGrad", GradientOfRsqrtGrad);
  registry.Register("DynamicPartition", GradientOfDynamicPartition);
  registry.Register("DynamicStitch", GradientOfDynamicStitch);
  registry.Register("ParallelDynamicStitch", GradientOfDynamicStitch);
  for (const char* const suffix : {"", "WithNumSegments"}) {
    const auto name = [=](const char* op) { return absl::StrCat(op, suffix); };
    registry.Register(name("SparseSegmentSum"), GradientOfSparseSegment<ops::SparseSegmentSumGrad>);
    registry.Register(name("SparseSegmentMean"),
                      GradientOfSparseSegment<ops::SparseSegmentMeanGrad>);
    registry.Register(name("SparseSegmentSqrtN"),
                      GradientOfSparseSegment<ops::SparseSegmentSqrtNGrad>);
  }
  using SparseSum = ops::SparseSegmentSumWithNumSegments;
  using SparseMean = ops::SparseSegmentMeanWithNumSegments;
  using SparseSqrtN = ops::SparseSegmentSqrtNWithNumSegments;
  registry.Register("SparseSegmentSumGrad", GradientOfSparseSegmentGrad<SparseSum>);
  registry.Register("SparseSegmentMeanGrad", GradientOfSparseSegmentGrad<SparseMean>);
  registry.Register("SparseSegmentSqrtNGrad", GradientOfSparseSegmentGrad<SparseSqrtN>);
  registry.Register("SparseSegmentSumGradV2", GradientOfSparseSegmentGradV2<SparseSum>);
  registry.Register("SparseSegmentMeanGradV2", GradientOfSparseSegmentGradV2<SparseMean>);
  registry.Register("SparseSegmentSqrtNGradV2", GradientOfSparseSegmentGradV2<SparseSqrtN>);
  // With an explicit number of segments, sorted ids are handled like unsorted ids.
  registry.Register("SegmentSumV2", GradientOfUnsortedSegmentSum);
  registry.Register("SegmentMinV2", GradientOfUnsortedSegmentMinOrMax);
  registry.Register("SegmentMaxV2", GradientOfUnsortedSegmentMinOrMax);
  registry.Register("SegmentProd", GradientOfSegmentProd);
  registry.Register("SegmentProdV2", GradientOfUnsortedSegmentProd);
  registry.Register("UnsortedSegmentProd", GradientOfUnsortedSegmentProd);
  registry.Register("SegmentSum", GradientOfSegmentSum);
  registry.Register("SegmentMean", GradientOfSegmentMean);
  registry.Register("SegmentMin", GradientOfSegmentMinOrMax);
  registry.Register("SegmentMax", GradientOfSegmentMinOrMax);
  registry.Register("UnsortedSegmentSum", GradientOfUnsortedSegmentSum);
  registry.Register("UnsortedSegmentMin", GradientOfUnsortedSegmentMinOrMax);
  registry.Register("UnsortedSegmentMax", GradientOfUnsortedSegmentMinOrMax);
  for (const char* const op : {"All",
                               "Any",
                               "ApproximateEqual",
                               "ArgMax",
                               "ArgMin",
                               "Bincount",
                               "BitwiseAnd",
                               "BitwiseOr",
                               "BitwiseXor",
                               "Bucketize",
                               "Ceil",
                               "DenseBincount",
                               "Equal",
                               "Floor",
                               "FloorDiv",
                               "Greater",
                               "GreaterEqual",
                               "HistogramFixedWidth",
                               "Invert",
                               "IsFinite",
                               "IsInf",
                               "IsNan",
                               "LeftShift",
                               "Less",
                               "LessEqual",
                               "LinSpace",
                               "LogicalAnd",
                               "LogicalNot",
                               "LogicalOr",
                               "NotEqual",
                               "PopulationCount",
                               "RaggedBincount",
                               "Range",
                               "RightShift",
                               "Rint",
                               "Round",
                               "SparseBincount",
                               "TruncateDiv"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::math

}  // namespace gradflow
