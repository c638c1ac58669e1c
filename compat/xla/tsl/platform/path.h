// path.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_PATH_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_PATH_H_

#include "tensorflow/core/platform/path.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_PATH_H_
