// bfloat16, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_BFLOAT16_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_BFLOAT16_H_

#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/framework/types.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_BFLOAT16_H_
