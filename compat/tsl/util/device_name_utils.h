// device_name_utils.h of tensorflow/core/util, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_UTIL_DEVICE_NAME_UTILS_H_
#define GRADFLOW_COMPAT_TSL_UTIL_DEVICE_NAME_UTILS_H_

#include "tensorflow/core/util/device_name_utils.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_UTIL_DEVICE_NAME_UTILS_H_
