// Hash64, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_HASH_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_HASH_H_

#include "tensorflow/core/lib/hash/hash.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_HASH_H_
