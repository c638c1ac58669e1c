// LOG and CHECK, at a path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_LOGGING_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_LOGGING_H_

#include "tensorflow/core/platform/logging.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_LOGGING_H_
