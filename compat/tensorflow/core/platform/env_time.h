// The clock; see env.h.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_ENV_TIME_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_ENV_TIME_H_

#include "tensorflow/core/platform/env.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_ENV_TIME_H_
