// random::New64, at the path of TensorFlow 1.15.
#ifndef GRADFLOW_COMPAT_CORE_LIB_RANDOM_RANDOM_H_
#define GRADFLOW_COMPAT_CORE_LIB_RANDOM_RANDOM_H_

#include "tensorflow/core/platform/random.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_RANDOM_RANDOM_H_
