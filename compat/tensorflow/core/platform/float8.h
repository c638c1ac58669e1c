// The 8-bit floats, which tensors hold and kernels do not compute with.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_FLOAT8_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_FLOAT8_H_

#include "tensorflow/core/framework/types.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_FLOAT8_H_
