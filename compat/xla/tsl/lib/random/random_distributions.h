// random_distributions.h of tensorflow/core/lib/random, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_RANDOM_DISTRIBUTIONS_H_
#define GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_RANDOM_DISTRIBUTIONS_H_

#include "tensorflow/core/lib/random/random_distributions.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_LIB_RANDOM_RANDOM_DISTRIBUTIONS_H_
