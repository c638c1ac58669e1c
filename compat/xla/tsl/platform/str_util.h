// str_util.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_STR_UTIL_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_STR_UTIL_H_

#include "tensorflow/core/platform/str_util.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_STR_UTIL_H_
