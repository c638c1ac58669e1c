// byte_order.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_BYTE_ORDER_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_BYTE_ORDER_H_

#include "tensorflow/core/platform/byte_order.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_BYTE_ORDER_H_
