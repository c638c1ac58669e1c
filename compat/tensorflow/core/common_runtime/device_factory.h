// DeviceFactory: creates the device of a test.
#ifndef GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_DEVICE_FACTORY_H_
#define GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_DEVICE_FACTORY_H_

#include <memory>
#include <string>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {

class DeviceFactory {
 public:
  // Returns null if `type` is not "CPU".
  static std::unique_ptr<Device> NewDevice(const std::string& type, const SessionOptions&,
                                           const std::string&) {
    return type == DEVICE_CPU ? std::make_unique<Device>() : nullptr;
  }
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_DEVICE_FACTORY_H_
