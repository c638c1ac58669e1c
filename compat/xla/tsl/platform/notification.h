// notification.h of tensorflow/core/platform, at its path in TSL.
#ifndef GRADFLOW_COMPAT_XLA_TSL_PLATFORM_NOTIFICATION_H_
#define GRADFLOW_COMPAT_XLA_TSL_PLATFORM_NOTIFICATION_H_

#include "tensorflow/core/platform/notification.h"
#include "tsl/tensorflow_names.h"

#endif  // GRADFLOW_COMPAT_XLA_TSL_PLATFORM_NOTIFICATION_H_
