// Helpers of kernels, at their path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_OPS_UTIL_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_OPS_UTIL_H_

#include "tensorflow/core/framework/ops_util.h"

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_OPS_UTIL_H_
