#include "gradflow/training/schedules.h"

#include "gradflow/core/status.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"

namespace gradflow {
namespace training {
namespace {

// Converts the step to double, which represents it exactly.
Output Exact(const Scope& scope, const Output& step) { return ops::Cast(scope, step, DT_DOUBLE); }

}  // namespace

Output PiecewiseConstant(const Scope& scope, const Output& step,
                         const std::vector<int64_t>& boundaries, const std::vector<float>& rates) {
  if (rates.size() != boundaries.size() + 1) {
    scope.UpdateStatus(errors::InvalidArgument("expected ", boundaries.size() + 1, " rates for ",
                                               boundaries.size(), " boundaries, found ",
                                               rates.size()));
    return Output();
  }
  Output rate = ops::Const(scope, rates[0]);
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const Output is_after =
        ops::Greater(scope, Exact(scope, step), static_cast<double>(boundaries[i]));
    rate = ops::SelectV2(scope, is_after, rates[i + 1], rate);
  }
  return rate;
}

Output ExponentialDecay(const Scope& scope, const Output& step, float rate, int64_t steps,
                        float decay, bool staircase) {
  Output quotient = ops::RealDiv(scope, Exact(scope, step), static_cast<double>(steps));
  if (staircase) quotient = ops::Floor(scope, quotient);
  const Output factor = ops::Pow(scope, static_cast<double>(decay), quotient);
  return ops::Cast(scope, ops::Mul(scope, factor, static_cast<double>(rate)), DT_FLOAT);
}

Output CosineDecay(const Scope& scope, const Output& step, float rate, int64_t steps, float alpha) {
  constexpr double kPi = 3.14159265358979323846;
  const auto all = static_cast<double>(steps);
  const Output done = ops::Minimum(scope, Exact(scope, step), all);
  const Output wave = ops::Cos(scope, ops::Mul(scope, done, kPi / all));
  const double range = (1.0 - static_cast<double>(alpha)) / 2;
  // alpha + (1 - alpha) * (1 + cos) / 2
  const Output factor =
      ops::Add(scope, ops::Mul(scope, wave, range), range + static_cast<double>(alpha));
  return ops::Cast(scope, ops::Mul(scope, factor, static_cast<double>(rate)), DT_FLOAT);
}

Output WarmUp(const Scope& scope, const Output& step, const Output& rate, int64_t steps) {
  const Output part =
      ops::RealDiv(scope, ops::Add(scope, Exact(scope, step), 1.0), static_cast<double>(steps));
  const Output factor = ops::Cast(scope, ops::Minimum(scope, part, 1.0), DT_FLOAT);
  return ops::Mul(scope, rate, factor);
}

}  // namespace training
}  // namespace gradflow
