// Flag and Flags, at their path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_UTIL_COMMAND_LINE_FLAGS_H_
#define GRADFLOW_COMPAT_TSL_UTIL_COMMAND_LINE_FLAGS_H_

#include "tensorflow/core/util/command_line_flags.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_UTIL_COMMAND_LINE_FLAGS_H_
