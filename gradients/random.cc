// Gradients of the ops of ops/random. Gamma numbers are differentiated by the shape of their
// distribution as quantiles: the probability of a smaller number stays the same. The numbers of
// most ops are no functions of their inputs.
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/register.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The sum over the samples of each element of alpha, whose shape the samples end with.
absl::Status GammaGradient(const Scope& scope, const Operation& op, int alpha_input,
                           const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output alpha = op.input(alpha_input);
  const DataType dtype = BaseType(alpha.type());
  // There is no derivative in half.
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
template <int kAlphaInput>
absl::Status GradientOfRandomGamma(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  return GammaGradient(scope, op, kAlphaInput, dy, dx);
}

}  // namespace
}  // namespace gradients

void RegisterRandomGradients(GradientRegistry& registry) {
  using namespace gradients;  // NOLINT(google-build-using-namespace)
  registry.Register("RandomGamma", GradientOfRandomGamma<1>);
  registry.Register("StatelessRandomGammaV2", GradientOfRandomGamma<2>);
  registry.Register("StatelessRandomGammaV3", GradientOfRandomGamma<4>);
  for (const char* const op :
       {"Multinomial",
        // Its own derivatives are not known.
        "RandomGammaGrad", "RandomShuffle", "RandomStandardNormal", "RandomUniform",
        "RandomUniformInt", "StatelessMultinomial", "StatelessRandomGetAlg",
        "StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg", "StatelessRandomNormal",
        "StatelessRandomNormalV2", "StatelessRandomUniform", "StatelessRandomUniformFullInt",
        "StatelessRandomUniformFullIntV2", "StatelessRandomUniformInt",
        "StatelessRandomUniformIntV2", "StatelessRandomUniformV2", "StatelessTruncatedNormal",
        "StatelessTruncatedNormalV2", "TruncatedNormal"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradflow
