// logging.h of tensorflow/core/platform/default, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_DEFAULT_LOGGING_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_DEFAULT_LOGGING_H_

#include "tensorflow/core/platform/default/logging.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_DEFAULT_LOGGING_H_
