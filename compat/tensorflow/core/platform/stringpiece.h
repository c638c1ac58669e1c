// StringPiece, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STRINGPIECE_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STRINGPIECE_H_

#include "tensorflow/core/lib/core/stringpiece.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STRINGPIECE_H_
