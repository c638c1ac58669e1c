// blocking_counter.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_BLOCKING_COUNTER_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_BLOCKING_COUNTER_H_

#include "tensorflow/core/platform/blocking_counter.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_BLOCKING_COUNTER_H_
