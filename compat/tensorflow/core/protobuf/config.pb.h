// ConfigProto, RunOptions and their like, which are plain classes here, not messages.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_CONFIG_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_CONFIG_PB_H_

#include "tensorflow/core/public/session_options.h"

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_CONFIG_PB_H_
