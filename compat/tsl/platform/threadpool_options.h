// ThreadPoolOptions, at its path in XLA.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_THREADPOOL_OPTIONS_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_THREADPOOL_OPTIONS_H_

#include "tensorflow/core/platform/threadpool_options.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_THREADPOOL_OPTIONS_H_
