// philox_random.h of tensorflow/core/lib/random, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_PHILOX_RANDOM_H_
#define GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_PHILOX_RANDOM_H_

#include "tensorflow/core/lib/random/philox_random.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_PHILOX_RANDOM_H_
