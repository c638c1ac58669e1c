// ThreadPoolInterface, at its path of 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_INTERFACE_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_INTERFACE_H_

#include "tensorflow/core/platform/threadpool_interface.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_INTERFACE_H_
