// Allocators, at their path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_FRAMEWORK_ALLOCATOR_H_
#define GRADFLOW_COMPAT_TSL_FRAMEWORK_ALLOCATOR_H_

#include "tensorflow/core/framework/allocator.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_FRAMEWORK_ALLOCATOR_H_
