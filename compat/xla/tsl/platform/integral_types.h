// integral_types.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_INTEGRAL_TYPES_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_INTEGRAL_TYPES_H_

#include "tensorflow/core/platform/integral_types.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_INTEGRAL_TYPES_H_
