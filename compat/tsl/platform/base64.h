// base64.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_BASE64_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_BASE64_H_

#include "tensorflow/core/platform/base64.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_BASE64_H_
