// Device, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_H_

#include "tensorflow/core/common_runtime/device.h"

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_H_
