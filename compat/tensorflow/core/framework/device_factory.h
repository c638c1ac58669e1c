// DeviceFactory, at its current path.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_FACTORY_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_FACTORY_H_

#include "tensorflow/core/common_runtime/device_factory.h"

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_FACTORY_H_
