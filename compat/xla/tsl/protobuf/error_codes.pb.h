// The codes of errors, at their path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PROTOBUF_ERROR_CODES_PB_H_
#define GRADFLOW_COMPAT_XLA_TSL_PROTOBUF_ERROR_CODES_PB_H_

#include "tensorflow/core/protobuf/error_codes.pb.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PROTOBUF_ERROR_CODES_PB_H_
