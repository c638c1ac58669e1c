// Elementary functions of one argument: Exp, Expm1, Log, Log1p, Sigmoid, the trigonometric and
// hyperbolic functions and their inverses, Erf, Erfc and Lgamma.
//
// ops/common/elementary_simd.h computes real functions. half and bfloat16 are computed in float.
// The C library computes complex functions; complex64 is computed in complex128.
#include <cmath>
#include <complex>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/math/sigmoid_simd.h"

namespace gradflow::elementary {
namespace {

template <typename T, Elementary kFunction>
void RealLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  ApplyElementary(kFunction, static_cast<const T*>(x[0]), static_cast<T*>(out), n);
}

template <typename T>
void SigmoidLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  ApplySigmoid(static_cast<const T*>(x[0]), static_cast<T*>(out), n);
}

using Complex = complex128;
using ComplexFunction = Complex (*)(const Complex& z);

Complex Expm1(const Complex& z) {
  const double half_sine = std::sin(z.imag() / 2);
  const double real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * half_sine * half_sine;
  return {real, std::exp(z.real()) * std::sin(z.imag())};
}

Complex Log1p(const Complex& z) {
  const double x = z.real();
  const double y = z.imag();
  // |1 + z|^2 - 1, computed without adding 1, which would absorb small terms.
  const double excess = x * (2 + x) + y * y;
  const double real =
      std::abs(excess) < 0.5 ? std::log1p(excess) / 2 : std::log(std::hypot(1 + x, y));
  return {real, std::atan2(y, 1 + x)};
}

Complex Sigmoid(const Complex& z) {
  if (z.real() >= 0) return 1.0 / (1.0 + std::exp(-z));
  const Complex e = std::exp(z);
  return e / (1.0 + e);
}

template <typename T, ComplexFunction kFunction>
void ComplexLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  const T* a = static_cast<const T*>(x[0]);
  T* result = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) result[i] = static_cast<T>(kFunction(Complex(a[i])));
}

constexpr int kRealPicoseconds = 3000;
constexpr int kComplexPicoseconds = 50000;

// Registers an op of real numbers. kFloatLoop computes float, kDoubleLoop double.
template <ElementwiseLoop kFloatLoop, ElementwiseLoop kDoubleLoop>
void RegisterReal(Registry& registry, absl::string_view op, absl::string_view types,
                  absl::string_view doc) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(types)
      .Shape(UnchangedShape)
      .Doc(absl::StrCat(doc, R"(

x: A tensor.
y: The results, of the shape of `x`.
T: The type of both.)"));
  registry.Kernel(op, MakeUnaryKernel<kFloatLoop, sizeof(float), kRealPicoseconds>)
      .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry.Kernel(op, MakeUnaryKernel<kDoubleLoop, sizeof(double), kRealPicoseconds * 2>)
      .Types("T", {DT_DOUBLE});
}

constexpr absl::string_view kRealTypes = "T: {bfloat16, half, float, double}";
constexpr absl::string_view kTypes = "T: {bfloat16, half, float, double, complex64, complex128}";

template <ComplexFunction kFunction>
void RegisterComplex(Registry& registry, absl::string_view op) {
  registry
      .Kernel(op, MakeUnaryKernel<ComplexLoop<complex64, kFunction>, sizeof(complex64),
                                  kComplexPicoseconds>)
      .Types("T", {DT_COMPLEX64});
  registry
      .Kernel(op, MakeUnaryKernel<ComplexLoop<complex128, kFunction>, sizeof(complex128),
                                  kComplexPicoseconds>)
      .Types("T", {DT_COMPLEX128});
}

template <Elementary kFunction, ComplexFunction kComplex>
void RegisterFunction(Registry& registry, absl::string_view op, absl::string_view doc) {
  RegisterReal<RealLoop<float, kFunction>, RealLoop<double, kFunction>>(registry, op, kTypes, doc);
  RegisterComplex<kComplex>(registry, op);
}

template <Elementary kFunction>
void RegisterRealFunction(Registry& registry, absl::string_view op, absl::string_view doc) {
  RegisterReal<RealLoop<float, kFunction>, RealLoop<double, kFunction>>(registry, op, kRealTypes,
                                                                        doc);
}

void RegisterExponentials(Registry& registry) {
  RegisterFunction<Elementary::kExp, std::exp<double>>(registry, "Exp",
                                                       "Returns e^x element-wise.");
  RegisterFunction<Elementary::kExpm1, Expm1>(registry, "Expm1",
                                              R"(Returns e^x - 1 element-wise.

Small results keep their precision.)");
  RegisterFunction<Elementary::kLog, std::log<double>>(
      registry, "Log", R"(Returns the natural logarithm of x element-wise.

The logarithm of zero is minus infinity. The logarithm of a negative real number is NaN.)");
  RegisterFunction<Elementary::kLog1p, Log1p>(
      registry, "Log1p", R"(Returns the natural logarithm of 1 + x element-wise.

Small results keep their precision. The logarithm for x = -1 is minus infinity, for smaller real
numbers NaN.)");
  RegisterReal<SigmoidLoop<float>, SigmoidLoop<double>>(
      registry, "Sigmoid", kTypes, R"(Returns the sigmoid 1 / (1 + e^-x) element-wise.

Does not overflow for any `x`. Results for real numbers are between 0 and 1.)");
  RegisterComplex<Sigmoid>(registry, "Sigmoid");
}

void RegisterTrigonometry(Registry& registry) {
  RegisterFunction<Elementary::kSin, std::sin<double>>(
      registry, "Sin", "Returns the sine of x element-wise, for x in radians.");
  RegisterFunction<Elementary::kCos, std::cos<double>>(
      registry, "Cos", "Returns the cosine of x element-wise, for x in radians.");
  RegisterFunction<Elementary::kTan, std::tan<double>>(
      registry, "Tan", "Returns the tangent of x element-wise, for x in radians.");
  RegisterFunction<Elementary::kAsin, std::asin<double>>(
      registry, "Asin", R"(Returns the inverse sine of x element-wise.

Results for real numbers are in [-pi/2, pi/2], or NaN if x is not in [-1, 1].)");
  RegisterFunction<Elementary::kAcos, std::acos<double>>(
      registry, "Acos", R"(Returns the inverse cosine of x element-wise.

Results for real numbers are in [0, pi], or NaN if x is not in [-1, 1].)");
  RegisterFunction<Elementary::kAtan, std::atan<double>>(
      registry, "Atan", R"(Returns the inverse tangent of x element-wise.

Results for real numbers are in [-pi/2, pi/2].)");
}

void RegisterHyperbolic(Registry& registry) {
  RegisterFunction<Elementary::kSinh, std::sinh<double>>(
      registry, "Sinh", "Returns the hyperbolic sine of x element-wise.");
  RegisterFunction<Elementary::kCosh, std::cosh<double>>(
      registry, "Cosh", "Returns the hyperbolic cosine of x element-wise.");
  RegisterFunction<Elementary::kTanh, std::tanh<double>>(
      registry, "Tanh", R"(Returns the hyperbolic tangent of x element-wise.

Results for real numbers are between -1 and 1.)");
  RegisterFunction<Elementary::kAsinh, std::asinh<double>>(
      registry, "Asinh", "Returns the inverse hyperbolic sine of x element-wise.");
  RegisterFunction<Elementary::kAcosh, std::acosh<double>>(
      registry, "Acosh", R"(Returns the inverse hyperbolic cosine of x element-wise.

Results for real numbers are nonnegative, or NaN if x is less than 1.)");
  RegisterFunction<Elementary::kAtanh, std::atanh<double>>(
      registry, "Atanh", R"(Returns the inverse hyperbolic tangent of x element-wise.

Results are infinities for -1 and 1, and NaN for real numbers not in [-1, 1].)");
}

}  // namespace

void Register(Registry& registry) {
  RegisterExponentials(registry);
  RegisterTrigonometry(registry);
  RegisterHyperbolic(registry);
  RegisterRealFunction<Elementary::kErf>(registry, "Erf",
                                         "Returns the Gauss error function of x element-wise.");
  RegisterRealFunction<Elementary::kErfc>(
      registry, "Erfc", R"(Returns 1 less the Gauss error function of x element-wise.

Small results keep their precision.)");
  RegisterRealFunction<Elementary::kLgamma>(
      registry, "Lgamma", R"(Returns the logarithm of the absolute value of Gamma(x) element-wise.

The result is infinity for 0 and negative integers.)");
}

}  // namespace gradflow::elementary
