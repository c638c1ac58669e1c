// Gradients of the ops of ops/random. The numbers of most ops have no derivative with respect to
// the inputs. Gamma samples are differentiated with respect to the shape parameter as quantiles:
// the probability of a smaller number stays the same.
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// Sums over the samples of each element of alpha. The shape of the samples ends with the shape of
// alpha.
absl::Status GammaGradient(const Scope& scope, const Operation& op, int alpha_input,
                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output alpha = op.input(alpha_input);
  const DataType dtype = BaseType(alpha.type());
  // Computes in float, because the derivative op does not support half.
  const auto widen = [&](const Output& x) -> Output {
    return dtype == DT_HALF ? Output(ops::Cast(scope, x, DT_FLOAT)) : x;
  };
  const Output slope = ops::RandomGammaGrad(scope, widen(alpha), widen(op.output(0)));
  const Output g = ops::Mul(scope, widen(dy[0]), slope);
  const Output samples = ops::Sub(scope, ops::Rank(scope, g), ops::Rank(scope, alpha));
  const Output sum = ops::Sum(scope, g, ops::Range(scope, 0, samples, 1));
  dx->assign(alpha_input, NoGradient());
  dx->push_back(dtype == DT_HALF ? Output(ops::Cast(scope, sum, DT_HALF)) : sum);
  return scope.status();
}
// A number x = mean + stddev z of a truncated normal distribution, differentiated with respect to
// its parameters. For mean and stddev, z is fixed. For the bounds, the probability cdf of a smaller
// number is fixed:
//   dmin = exp((z^2 - a^2) / 2) (1 - cdf), dmax = exp((z^2 - b^2) / 2) cdf
// where a = (min - mean) / stddev and b = (max - mean) / stddev. As in TensorFlow.
absl::Status GradientOfTruncatedNormal(const Scope& scope, const Operation& op,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output x = op.output(0);
  const DataType dtype = BaseType(x.type());
  const Output half = Scalar(scope, dtype, 0.5);
  const auto standard = [&](const Output& value) -> Output {
    return ops::Div(scope, ops::Sub(scope, value, op.input(2)), op.input(3));
  };
  const auto probability = [&](const Output& value) -> Output {
    const Output scaled = ops::Mul(scope, Scalar(scope, dtype, -0.70710678118654752440), value);
    return ops::Mul(scope, half, ops::Erfc(scope, scaled));
  };
  const Output z = standard(x);
  const Output a = standard(op.input(4));
  const Output b = standard(op.input(5));
  const Output below = probability(a);
  const Output cdf = ops::Div(scope, ops::Sub(scope, probability(z), below),
                              ops::Sub(scope, probability(b), below));
  const auto density = [&](const Output& bound) -> Output {
    const Output difference = ops::Sub(scope, ops::Square(scope, z), ops::Square(scope, bound));
    return ops::Exp(scope, ops::Mul(scope, half, difference));
  };
  const Output rest = ops::Sub(scope, Scalar(scope, dtype, 1), cdf);
  const std::vector<Output> slopes = {ops::OnesLike(scope, z), z, ops::Mul(scope, density(a), rest),
                                      ops::Mul(scope, density(b), cdf)};
  *dx = {NoGradient(), NoGradient()};
  for (int i = 0; i < 4; ++i) {
    dx->push_back(SumToShapeOf(scope, ops::Mul(scope, dy[0], slopes[i]), op.input(2 + i), x));
  }
  return scope.status();
}

template <int kAlphaInput>
absl::Status GradientOfRandomGamma(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  return GammaGradient(scope, op, kAlphaInput, dy, dx);
}

}  // namespace
}  // namespace gradients

namespace gradients::random {

void Register(GradientRegistry& registry) {
  registry.Register("RandomGamma", GradientOfRandomGamma<1>);
  registry.Register("StatelessRandomGammaV2", GradientOfRandomGamma<2>);
  registry.Register("StatelessRandomGammaV3", GradientOfRandomGamma<4>);
  registry.Register("StatelessParameterizedTruncatedNormal", GradientOfTruncatedNormal);
  for (const char* const op : {"AllCandidateSampler",
                               "ComputeAccidentalHits",
                               "FixedUnigramCandidateSampler",
                               "LearnedUnigramCandidateSampler",
                               "LogUniformCandidateSampler",
                               "Multinomial",
                               "NonDeterministicInts",
                               "ParameterizedTruncatedNormal",
                               "RandomPoisson",
                               "RandomPoissonV2",
                               "RandomShuffle",
                               "RandomStandardNormal",
                               "RandomUniform",
                               "RandomUniformInt",
                               "RngReadAndSkip",
                               "RngSkip",
                               "StatefulRandomBinomial",
                               "StatefulStandardNormalV2",
                               "StatefulTruncatedNormal",
                               "StatefulUniform",
                               "StatefulUniformFullInt",
                               "StatefulUniformInt",
                               "StatelessMultinomial",
                               "StatelessRandomGetAlg",
                               "StatelessRandomGetKeyCounter",
                               "StatelessRandomGetKeyCounterAlg",
                               "StatelessRandomBinomial",
                               "StatelessRandomNormal",
                               "StatelessRandomNormalV2",
                               "StatelessRandomPoisson",
                               "StatelessRandomUniform",
                               "StatelessRandomUniformFullInt",
                               "StatelessRandomUniformFullIntV2",
                               "StatelessRandomUniformInt",
                               "StatelessRandomUniformIntV2",
                               "StatelessRandomUniformV2",
                               "StatelessTruncatedNormal",
                               "StatelessTruncatedNormalV2",
                               "ThreadUnsafeUnigramCandidateSampler",
                               "TruncatedNormal",
                               "UniformCandidateSampler"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::random

}  // namespace gradflow
