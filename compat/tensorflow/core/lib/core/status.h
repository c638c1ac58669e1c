// Status, at the path of TensorFlow 1.15.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_STATUS_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_STATUS_H_

#include "tensorflow/core/platform/status.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_STATUS_H_
