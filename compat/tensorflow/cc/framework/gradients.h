// AddSymbolicGradients; see gradflow/gradients/gradients.h.
#ifndef GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENTS_H_
#define GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENTS_H_

#include "gradflow/gradients/gradients.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

using ::gradflow::AddSymbolicGradients;
using ::gradflow::NoGradient;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENTS_H_
