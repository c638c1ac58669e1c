// AddSymbolicGradients; see gradflow/gradients/gradients.h.
#ifndef GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENTS_H_
#define GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENTS_H_

#include <vector>

#include "gradflow/gradients/gradients.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

using ::gradflow::NoGradient;

// Adds the gradients of `outputs` with respect to `inputs`, given the gradients of `outputs`, which
// default to ones. The new ops are named like other ops of the scope. This is an object, because a
// function would be ambiguous with gradflow's function.
struct AddSymbolicGradientsFunction {
  Status operator()(const gradflow::Scope& scope, const std::vector<Output>& outputs,
                    const std::vector<Output>& inputs, const std::vector<Output>& grad_inputs,
                    std::vector<Output>* grad_outputs) const {
    return gradflow::AddSymbolicGradients(scope, outputs, inputs, grad_inputs, grad_outputs,
                                          Options());
  }
  Status operator()(const gradflow::Scope& scope, const std::vector<Output>& outputs,
                    const std::vector<Output>& inputs, std::vector<Output>* grad_outputs) const {
    return gradflow::AddSymbolicGradients(scope, outputs, inputs, grad_outputs, Options());
  }

 private:
  static gradflow::GradientBuildOptions Options() {
    gradflow::GradientBuildOptions options;
    options.plain_names = true;
    options.of_integers = true;
    options.inputs_must_be_reached = true;
    return options;
  }
};
inline constexpr AddSymbolicGradientsFunction AddSymbolicGradients;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENTS_H_
