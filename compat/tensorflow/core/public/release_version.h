// The version, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_PUBLIC_RELEASE_VERSION_H_
#define GRADFLOW_COMPAT_CORE_PUBLIC_RELEASE_VERSION_H_

#include "tensorflow/core/public/version.h"

#endif  // GRADFLOW_COMPAT_CORE_PUBLIC_RELEASE_VERSION_H_
