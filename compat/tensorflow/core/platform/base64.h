// Base64, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_BASE64_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_BASE64_H_

#include "tensorflow/core/lib/strings/base64.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_BASE64_H_
