// str_util, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STR_UTIL_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STR_UTIL_H_

#include "tensorflow/core/lib/strings/str_util.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STR_UTIL_H_
