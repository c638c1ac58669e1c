// platform.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_PLATFORM_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_PLATFORM_H_

#include "tensorflow/core/platform/platform.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_PLATFORM_H_
