// random.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_RANDOM_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_RANDOM_H_

#include "tensorflow/core/platform/random.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_RANDOM_H_
