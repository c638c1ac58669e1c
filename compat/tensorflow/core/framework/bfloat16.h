// bfloat16, with Eigen's functions for it.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_BFLOAT16_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_BFLOAT16_H_

#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/framework/types.h"

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_BFLOAT16_H_
