// math_util.h of tensorflow/core/lib/math, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_LIB_MATH_MATH_UTIL_H_
#define GRADFLOW_COMPAT_TSL_LIB_MATH_MATH_UTIL_H_

#include "tensorflow/core/lib/math/math_util.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_LIB_MATH_MATH_UTIL_H_
