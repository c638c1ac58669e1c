// io::JoinPath, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_PATH_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_PATH_H_

#include "tensorflow/core/lib/io/path.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_PATH_H_
