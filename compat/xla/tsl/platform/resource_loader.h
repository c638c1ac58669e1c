// resource_loader.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_RESOURCE_LOADER_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_RESOURCE_LOADER_H_

#include "tensorflow/core/platform/resource_loader.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_RESOURCE_LOADER_H_
