// bit_cast and down_cast, at their path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_CASTS_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_CASTS_H_

#include "tensorflow/core/platform/casts.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_CASTS_H_
