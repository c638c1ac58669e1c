// BlockingCounter, at its path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_BLOCKING_COUNTER_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_BLOCKING_COUNTER_H_

#include "tensorflow/core/platform/blocking_counter.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_BLOCKING_COUNTER_H_
