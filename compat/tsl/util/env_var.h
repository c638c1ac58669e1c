// env_var.h of tensorflow/core/util, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_UTIL_ENV_VAR_H_
#define GRADFLOW_COMPAT_TSL_UTIL_ENV_VAR_H_

#include "tensorflow/core/util/env_var.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_UTIL_ENV_VAR_H_
