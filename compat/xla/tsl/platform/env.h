// env.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_ENV_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_ENV_H_

#include "tensorflow/core/platform/env.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_ENV_H_
