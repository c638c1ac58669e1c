// cpu_info.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_CPU_INFO_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_CPU_INFO_H_

#include "tensorflow/core/platform/cpu_info.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_CPU_INFO_H_
