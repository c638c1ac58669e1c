// Ops of special functions (special_functions.h): Digamma, Erfinv, Ndtri, Igamma, Igammac,
// IgammaGradA, RandomGammaGrad, Zeta, Polygamma, Betainc, Dawsn, Expint, FresnelCos, FresnelSin,
// Spence and the Bessel functions.
//
// All types are computed in double.
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/math/special_functions.h"

namespace gradflow::special {
namespace {

namespace sf = special_functions;

// For the sizes of blocks. Most arguments take less time, but a few take microseconds.
constexpr double kNanoseconds = 200;

using UnaryFunction = double (*)(double);
using BinaryFunction = double (*)(double, double);

template <typename T, UnaryFunction kFunction>
void UnaryFunctionLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  internal::UnaryRun<T, T>([](T value) { return kFunction(value); }, x, out, n);
}

template <typename T, BinaryFunction kFunction>
void BinaryFunctionLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  internal::BinaryRun<T, T>([](T a, T b) { return kFunction(a, b); }, x, strides, out, n);
}

template <UnaryFunction kFunction>
void RegisterUnary(Registry& registry, absl::string_view op, absl::string_view group,
                   absl::string_view doc) {
  registry.Op(op)
      .Group(group)
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Shape(UnchangedShape)
      .Doc(absl::StrCat(doc, R"(

x: A tensor of floating-point numbers.
y: The results, of the shape of `x`.
T: The type of both.)"));
  constexpr int kPicoseconds = static_cast<int>(kNanoseconds * 1000);
  registry
      .Kernel(op, MakeUnaryKernel<UnaryFunctionLoop<float, kFunction>, sizeof(float), kPicoseconds>)
      .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry
      .Kernel(op,
              MakeUnaryKernel<UnaryFunctionLoop<double, kFunction>, sizeof(double), kPicoseconds>)
      .Types("T", {DT_DOUBLE});
}

template <BinaryFunction kFunction>
void RegisterBinaryFunctionKernels(Registry& registry, absl::string_view op,
                                   const DataTypeVector& floats) {
  constexpr int kPicoseconds = static_cast<int>(kNanoseconds * 1000);
  registry
      .Kernel(op,
              MakeBinaryKernel<BinaryFunctionLoop<float, kFunction>, sizeof(float), kPicoseconds>)
      .Types("T", floats);
  registry
      .Kernel(op,
              MakeBinaryKernel<BinaryFunctionLoop<double, kFunction>, sizeof(double), kPicoseconds>)
      .Types("T", {DT_DOUBLE});
}

template <BinaryFunction kFunction>
void RegisterBinary(Registry& registry, absl::string_view op, absl::string_view a,
                    absl::string_view b, bool has_halves, absl::string_view doc) {
  registry.Op(op)
      .Group("math_ops")
      .Input(absl::StrCat(a, ": T"))
      .Input(absl::StrCat(b, ": T"))
      .Output("z: T")
      .Attr(has_halves ? "T: {bfloat16, half, float, double}" : "T: {float, double}")
      .Shape(BroadcastBinaryShape)
      .Doc(absl::StrCat(doc, "\n\nThe inputs are broadcast to one shape as NumPy does.\n\n", a,
                        ": A tensor.\n", b,
                        ": A tensor of the same type.\nz: The results, of the broadcast shape.\n"
                        "T: The type of the inputs and the output."));
  DataTypeVector floats = {DT_FLOAT};
  if (has_halves) floats = {DT_FLOAT, DT_HALF, DT_BFLOAT16};
  RegisterBinaryFunctionKernels<kFunction>(registry, op, floats);
}

// ---- Betainc ----

// Returns the common shape of the inputs that are not scalars.
absl::StatusOr<PartialTensorShape> BetaincOutput(const PartialTensorShape shapes[3]) {
  constexpr const char* kNames[] = {"a", "b", "x"};
  // An input of unknown rank may be a scalar.
  PartialTensorShape output;
  int first = -1;
  bool all_ranks_known = true;
  for (int i = 0; i < 3; ++i) {
    if (shapes[i].dims() == 0) continue;
    if (shapes[i].unknown_rank()) {
      all_ranks_known = false;
      continue;
    }
    if (first < 0) {
      first = i;
      output = shapes[i];
      continue;
    }
    absl::StatusOr<PartialTensorShape> merged = output.MergeWith(shapes[i]);
    if (!merged.ok()) {
      return errors::InvalidArgument(kNames[first], " and ", kNames[i],
                                     " must be scalars or have the same shape, but have ",
                                     shapes[first].DebugString(), " and ", shapes[i].DebugString());
    }
    output = *std::move(merged);
  }
  if (first < 0 && all_ranks_known) return PartialTensorShape({});
  return output;
}

absl::Status BetaincShape(ShapeContext& c) {
  const PartialTensorShape shapes[] = {c.input(0), c.input(1), c.input(2)};
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape output, BetaincOutput(shapes));
  c.set_output(0, std::move(output));
  return absl::OkStatus();
}

template <typename T>
absl::Status Betainc(KernelContext& ctx) {
  const PartialTensorShape shapes[] = {ctx.input(0).shape(), ctx.input(1).shape(),
                                       ctx.input(2).shape()};
  GRADFLOW_RETURN_IF_ERROR(BetaincOutput(shapes).status());
  constexpr int kSize = sizeof(T);
  return RunElementwise(
      ctx, {kSize, kSize, kSize}, kNanoseconds,
      [](const void* const* operands, const int64_t* strides, void* out, int64_t n) {
        const T* const a = static_cast<const T*>(operands[0]);
        const T* const b = static_cast<const T*>(operands[1]);
        const T* const x = static_cast<const T*>(operands[2]);
        T* const result = static_cast<T*>(out);
        for (int64_t i = 0; i < n; ++i) {
          result[i] =
              static_cast<T>(sf::Betainc(a[i * strides[0]], b[i * strides[1]], x[i * strides[2]]));
        }
      });
}

void RegisterBetainc(Registry& registry) {
  registry.Op("Betainc")
      .Group("math_ops")
      .Input("a: T")
      .Input("b: T")
      .Input("x: T")
      .Output("z: T")
      .Attr("T: {float, double}")
      .Shape(BetaincShape)
      .Doc(R"(Returns the regularized incomplete beta function I_x(a, b) element-wise.

It is the integral of t^(a-1) (1-t)^(b-1) from 0 to x, divided by the integral from 0 to 1. The
result is NaN unless a > 0, b > 0 and 0 <= x <= 1. Scalars are broadcast.

a: A tensor.
b: A scalar or a tensor of the same shape.
x: A scalar or a tensor of the same shape.
z: The results, of the shape of the inputs that are not scalars.
T: The type of the inputs and the output.)");
  registry.Kernel("Betainc", MakeFunctionKernel<Betainc<float>>).Type<float>("T");
  registry.Kernel("Betainc", MakeFunctionKernel<Betainc<double>>).Type<double>("T");
}

void RegisterRandomGammaGrad(Registry& registry) {
  registry.Op("RandomGammaGrad")
      .Group("random_ops")
      .Input("alpha: T")
      .Input("sample: T")
      .Output("output: T")
      .Attr("T: {float, double}")
      .Shape(BroadcastBinaryShape)
      .Doc(
          R"(Returns the derivatives of gamma samples with respect to the shape parameter, element-wise.

The derivative is at a fixed quantile: the probability of a smaller sample stays the same. The
inputs are broadcast to one shape as NumPy does.

alpha: The shape parameters of the distributions.
sample: Numbers drawn from these distributions, such as by RandomGamma.
output: The derivatives, of the broadcast shape.
T: The type of the inputs and the output.)");
  RegisterBinaryFunctionKernels<sf::GammaSampleGradAlpha>(registry, "RandomGammaGrad", {DT_FLOAT});
}

void RegisterGammaFunctions(Registry& registry) {
  RegisterUnary<sf::Digamma>(registry, "Digamma", "math_ops",
                             R"(Returns the derivative of Lgamma(x) element-wise.

The result is NaN for 0 and negative integers.)");
  RegisterBinary<sf::Igamma>(
      registry, "Igamma", "a", "x", true,
      R"(Returns the lower regularized incomplete gamma function P(a, x) element-wise.

It is the integral of t^(a-1) e^-t from 0 to x, divided by Gamma(a). The result is NaN unless a > 0
and x >= 0.)");
  RegisterBinary<sf::Igammac>(
      registry, "Igammac", "a", "x", true,
      R"(Returns the upper regularized incomplete gamma function Q(a, x) element-wise.

It is the integral of t^(a-1) e^-t from x to infinity, divided by Gamma(a). The result is NaN unless
a > 0 and x >= 0.)");
  RegisterBinary<sf::IgammaGradA>(
      registry, "IgammaGradA", "a", "x", false,
      "Returns the derivative of Igamma(a, x) with respect to a, element-wise.");
  RegisterBinary<sf::Zeta>(
      registry, "Zeta", "x", "q", false,
      R"(Returns the Hurwitz zeta function, the sum of (k + q)^-x over k = 0, 1, ..., element-wise.

The result is infinity for x = 1 and for q = 0, -1, .... It is NaN for x < 1, and for negative q if
x is not an integer.)");
  RegisterBinary<sf::Polygamma>(
      registry, "Polygamma", "a", "x", false,
      R"(Returns the polygamma function, the derivative of order a of Digamma(x), element-wise.

The result is NaN unless a is 0, 1, 2, ....)");
}

void RegisterNormalDistribution(Registry& registry) {
  RegisterUnary<sf::Erfinv>(registry, "Erfinv", "math_ops",
                            R"(Returns the inverse of the Gauss error function element-wise.

The result is NaN for x not in [-1, 1].)");
  RegisterUnary<sf::Ndtri>(
      registry, "Ndtri", "math_ops",
      R"(Returns the quantile of the standard normal distribution for probability x, element-wise.

It is the inverse of the cumulative distribution function of the standard normal distribution. The
result is NaN for x not in [0, 1].)");
}

void RegisterIntegrals(Registry& registry) {
  constexpr absl::string_view kGroup = "special_math_ops";
  RegisterUnary<sf::Dawsn>(registry, "Dawsn", kGroup,
                           "Returns Dawson's integral, e^(-x^2) times the integral of e^(t^2) from "
                           "0 to x, element-wise.");
  RegisterUnary<sf::Expint>(
      registry, "Expint", kGroup,
      R"(Returns the exponential integral, the integral of e^t / t from -infinity to x, element-wise.

The result is NaN for negative numbers and infinity.)");
  RegisterUnary<sf::FresnelCos>(
      registry, "FresnelCos", kGroup,
      "Returns Fresnel's integral of cos(pi t^2 / 2) from 0 to x element-wise.");
  RegisterUnary<sf::FresnelSin>(
      registry, "FresnelSin", kGroup,
      "Returns Fresnel's integral of sin(pi t^2 / 2) from 0 to x element-wise.");
  RegisterUnary<sf::Spence>(
      registry, "Spence", kGroup,
      R"(Returns Spence's integral, the integral of log(t) / (1 - t) from 1 to x, element-wise.

It is the dilogarithm of 1 - x. The result is NaN for negative numbers and infinity.)");
}

void RegisterBesselFunctions(Registry& registry) {
  constexpr absl::string_view kGroup = "special_math_ops";
  RegisterUnary<sf::BesselI0>(
      registry, "BesselI0", kGroup,
      "Returns the modified Bessel function of the first kind of order 0 element-wise.");
  RegisterUnary<sf::BesselI1>(
      registry, "BesselI1", kGroup,
      "Returns the modified Bessel function of the first kind of order 1 element-wise.");
  RegisterUnary<sf::BesselI0e>(registry, "BesselI0e", kGroup,
                               "Returns e^-|x| BesselI0(x) element-wise, which does not overflow.");
  RegisterUnary<sf::BesselI1e>(registry, "BesselI1e", kGroup,
                               "Returns e^-|x| BesselI1(x) element-wise, which does not overflow.");
  constexpr absl::string_view kOfPositive =
      "\n\nThe result is infinity for zero and negative numbers.";
  RegisterUnary<sf::BesselK0>(
      registry, "BesselK0", kGroup,
      absl::StrCat("Returns the modified Bessel function of the second kind of order 0 "
                   "element-wise.",
                   kOfPositive));
  RegisterUnary<sf::BesselK1>(
      registry, "BesselK1", kGroup,
      absl::StrCat("Returns the modified Bessel function of the second kind of order 1 "
                   "element-wise.",
                   kOfPositive));
  RegisterUnary<sf::BesselK0e>(
      registry, "BesselK0e", kGroup,
      absl::StrCat("Returns e^x BesselK0(x) element-wise, which does not underflow.", kOfPositive));
  RegisterUnary<sf::BesselK1e>(
      registry, "BesselK1e", kGroup,
      absl::StrCat("Returns e^x BesselK1(x) element-wise, which does not underflow.", kOfPositive));
  RegisterUnary<sf::BesselJ0>(
      registry, "BesselJ0", kGroup,
      "Returns the Bessel function of the first kind of order 0 element-wise.");
  RegisterUnary<sf::BesselJ1>(
      registry, "BesselJ1", kGroup,
      "Returns the Bessel function of the first kind of order 1 element-wise.");
  constexpr absl::string_view kMinus =
      "\n\nThe result is minus infinity for zero and negative numbers.";
  RegisterUnary<sf::BesselY0>(
      registry, "BesselY0", kGroup,
      absl::StrCat("Returns the Bessel function of the second kind of order 0 element-wise.",
                   kMinus));
  RegisterUnary<sf::BesselY1>(
      registry, "BesselY1", kGroup,
      absl::StrCat("Returns the Bessel function of the second kind of order 1 element-wise.",
                   kMinus));
}

}  // namespace

void Register(Registry& registry) {
  RegisterRandomGammaGrad(registry);
  RegisterGammaFunctions(registry);
  RegisterBetainc(registry);
  RegisterNormalDistribution(registry);
  RegisterIntegrals(registry);
  RegisterBesselFunctions(registry);
}

}  // namespace gradflow::special
