// mem.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_MEM_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_MEM_H_

#include "tensorflow/core/platform/mem.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_MEM_H_
