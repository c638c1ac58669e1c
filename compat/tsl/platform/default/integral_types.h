// integral_types.h of tensorflow/core/platform/default, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_DEFAULT_INTEGRAL_TYPES_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_DEFAULT_INTEGRAL_TYPES_H_

#include "tensorflow/core/platform/default/integral_types.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_DEFAULT_INTEGRAL_TYPES_H_
