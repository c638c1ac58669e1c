// Notification, at its path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_NOTIFICATION_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_NOTIFICATION_H_

#include "tensorflow/core/platform/notification.h"

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_NOTIFICATION_H_
