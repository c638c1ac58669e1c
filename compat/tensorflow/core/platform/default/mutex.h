// mutex, at a path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_MUTEX_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_MUTEX_H_

#include "tensorflow/core/platform/mutex.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_MUTEX_H_
