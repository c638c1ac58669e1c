// numeric_types.h of tensorflow/core/framework, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_FRAMEWORK_NUMERIC_TYPES_H_
#define GRADFLOW_COMPAT_TSL_FRAMEWORK_NUMERIC_TYPES_H_

#include "tensorflow/core/framework/numeric_types.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_FRAMEWORK_NUMERIC_TYPES_H_
