// Device: the CPU, for tests that create their device.
#ifndef GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_DEVICE_H_
#define GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_DEVICE_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {

class Device : public DeviceBase {
 public:
  explicit Device(Env* env = nullptr) : DeviceBase(env) {}
  // Waits for pending work, which a CPU device never has.
  absl::Status Sync() { return absl::OkStatus(); }
  const char* device_type() const { return DEVICE_CPU; }
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_DEVICE_H_
