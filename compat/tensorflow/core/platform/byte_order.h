// port::kLittleEndian.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_BYTE_ORDER_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_BYTE_ORDER_H_

#include "tensorflow/core/platform/cpu_info.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_BYTE_ORDER_H_
