// bfloat16, at its path of 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_BFLOAT16_BFLOAT16_H_
#define GRADFLOW_COMPAT_CORE_LIB_BFLOAT16_BFLOAT16_H_

#include "tensorflow/core/platform/bfloat16.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_BFLOAT16_BFLOAT16_H_
