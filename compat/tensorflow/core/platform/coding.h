// Integers as bytes; see coding.h of lib/core.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_CODING_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_CODING_H_

#include "tensorflow/core/lib/core/coding.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_CODING_H_
