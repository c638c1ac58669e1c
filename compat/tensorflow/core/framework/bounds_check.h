// FastBoundsCheck, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_BOUNDS_CHECK_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_BOUNDS_CHECK_H_

#include "tensorflow/core/kernels/bounds_check.h"

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_BOUNDS_CHECK_H_
