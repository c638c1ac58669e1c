// cancellation.h of tensorflow/core/framework, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_FRAMEWORK_CANCELLATION_H_
#define GRADFLOW_COMPAT_XLA_TSL_FRAMEWORK_CANCELLATION_H_

#include "tensorflow/core/framework/cancellation.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_FRAMEWORK_CANCELLATION_H_
