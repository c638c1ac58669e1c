// Learning rates that vary with the step, as scalars of type float.
//
//   const Output step = NewVariable(scope, "global_step", DT_INT64, TensorShape());
//   const Output rate = CosineDecay(scope, ReadVariable(scope, step), 0.01f, 10000);
//   Adam adam(scope, AdamOptions().LearningRate(rate));
#ifndef GRADFLOW_TRAINING_SCHEDULES_H_
#define GRADFLOW_TRAINING_SCHEDULES_H_

#include <cstdint>
#include <vector>

#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// rates[i], where i is the number of boundaries less than the step. There must be one more rate
// than boundaries; otherwise an error is reported through the scope. REQUIRES: boundaries ascend
Output PiecewiseConstant(const Scope& scope, const Output& step,
                         const std::vector<int64_t>& boundaries, const std::vector<float>& rates);

// rate * decay^(step / steps). With `staircase`, the quotient is rounded down.
Output ExponentialDecay(const Scope& scope, const Output& step, float rate, int64_t steps,
                        float decay, bool staircase = false);

// Decays from `rate` to alpha * rate, along half a cosine wave over `steps` steps. Then constant.
Output CosineDecay(const Scope& scope, const Output& step, float rate, int64_t steps,
                   float alpha = 0);

// `rate` times (step + 1) / steps in the first `steps` steps, `rate` afterwards.
Output WarmUp(const Scope& scope, const Output& step, const Output& rate, int64_t steps);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_SCHEDULES_H_
