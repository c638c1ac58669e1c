// env_time.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_ENV_TIME_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_ENV_TIME_H_

#include "tensorflow/core/platform/env_time.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_ENV_TIME_H_
