// dynamic_annotations.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_DYNAMIC_ANNOTATIONS_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_DYNAMIC_ANNOTATIONS_H_

#include "tensorflow/core/platform/dynamic_annotations.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_DYNAMIC_ANNOTATIONS_H_
