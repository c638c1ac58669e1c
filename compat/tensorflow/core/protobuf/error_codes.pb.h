// error::Code and its values: the codes of absl::Status.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_ERROR_CODES_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_ERROR_CODES_PB_H_

#include "tensorflow/core/platform/status.h"

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_ERROR_CODES_PB_H_
