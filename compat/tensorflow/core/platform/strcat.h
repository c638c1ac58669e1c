// strings::StrCat, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STRCAT_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STRCAT_H_

#include "tensorflow/core/lib/strings/strcat.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STRCAT_H_
