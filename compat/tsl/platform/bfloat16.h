// bfloat16.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_BFLOAT16_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_BFLOAT16_H_

#include "tensorflow/core/platform/bfloat16.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_BFLOAT16_H_
