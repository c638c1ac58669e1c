// stack_frame.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_PLATFORM_STACK_FRAME_H_
#define GRADFLOW_COMPAT_TSL_PLATFORM_STACK_FRAME_H_

#include "tensorflow/core/platform/stack_frame.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_PLATFORM_STACK_FRAME_H_
