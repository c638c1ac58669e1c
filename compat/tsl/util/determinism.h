// determinism.h of tensorflow/core/util, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_UTIL_DETERMINISM_H_
#define GRADFLOW_COMPAT_TSL_UTIL_DETERMINISM_H_

#include "tensorflow/core/util/determinism.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_UTIL_DETERMINISM_H_
