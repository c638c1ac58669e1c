// tensor_float_32_utils.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_TENSOR_FLOAT_32_UTILS_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_TENSOR_FLOAT_32_UTILS_H_

#include "tensorflow/core/platform/tensor_float_32_utils.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_TENSOR_FLOAT_32_UTILS_H_
