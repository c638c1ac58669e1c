// thread::ThreadPool, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_H_

#include "tensorflow/core/lib/core/threadpool.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_H_
