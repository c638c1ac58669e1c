// The codes of errors, at their path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_ERROR_CODES_PB_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_ERROR_CODES_PB_H_

#include "tensorflow/core/protobuf/error_codes.pb.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_ERROR_CODES_PB_H_
