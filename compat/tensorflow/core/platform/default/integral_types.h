// int32 and the like, at a path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_INTEGRAL_TYPES_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_INTEGRAL_TYPES_H_

#include "tensorflow/core/platform/types.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_INTEGRAL_TYPES_H_
