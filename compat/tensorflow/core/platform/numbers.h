// Conversion of numbers to and from text, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_NUMBERS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_NUMBERS_H_

#include "tensorflow/core/lib/strings/numbers.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_NUMBERS_H_
