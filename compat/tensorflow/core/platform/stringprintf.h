// strings::Printf, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STRINGPRINTF_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STRINGPRINTF_H_

#include "tensorflow/core/lib/strings/stringprintf.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STRINGPRINTF_H_
