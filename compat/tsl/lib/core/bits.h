// bits.h of tensorflow/core/lib/core, at its path in TSL.
#ifndef GRADFLOW_COMPAT_TSL_LIB_CORE_BITS_H_
#define GRADFLOW_COMPAT_TSL_LIB_CORE_BITS_H_

#include "tensorflow/core/lib/core/bits.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_TSL_LIB_CORE_BITS_H_
