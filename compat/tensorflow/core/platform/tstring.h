// tstring, which is std::string here.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_TSTRING_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_TSTRING_H_

#include "tensorflow/core/platform/types.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_TSTRING_H_
