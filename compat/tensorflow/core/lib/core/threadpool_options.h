// ThreadPoolOptions, at its path of 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_OPTIONS_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_OPTIONS_H_

#include "tensorflow/core/platform/threadpool_options.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_OPTIONS_H_
