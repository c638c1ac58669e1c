// ThreadPoolInterface, at its path in XLA.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_THREADPOOL_INTERFACE_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_THREADPOOL_INTERFACE_H_

#include "tensorflow/core/platform/threadpool_interface.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_THREADPOOL_INTERFACE_H_
