// raw_coding.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_RAW_CODING_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_RAW_CODING_H_

#include "tensorflow/core/platform/raw_coding.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_RAW_CODING_H_
