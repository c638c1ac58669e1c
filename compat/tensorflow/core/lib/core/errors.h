// errors, at the path of TensorFlow 1.15.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_ERRORS_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_ERRORS_H_

#include "tensorflow/core/platform/errors.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_ERRORS_H_
