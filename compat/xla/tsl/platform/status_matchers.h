// status_matchers.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_STATUS_MATCHERS_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_STATUS_MATCHERS_H_

#include "tensorflow/core/platform/status_matchers.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_STATUS_MATCHERS_H_
