// half, bfloat16 and the quantised types: all of types.h.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NUMERIC_TYPES_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NUMERIC_TYPES_H_

#include "tensorflow/core/framework/types.h"

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NUMERIC_TYPES_H_
