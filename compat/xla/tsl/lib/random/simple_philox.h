// simple_philox.h of tensorflow/core/lib/random, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_SIMPLE_PHILOX_H_
#define GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_SIMPLE_PHILOX_H_

#include "tensorflow/core/lib/random/simple_philox.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_SIMPLE_PHILOX_H_
