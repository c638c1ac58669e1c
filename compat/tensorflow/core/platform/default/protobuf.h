// Protocol Buffers, at their path of 1.x.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_PROTOBUF_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_PROTOBUF_H_

#include "tensorflow/core/platform/protobuf.h"

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_DEFAULT_PROTOBUF_H_
