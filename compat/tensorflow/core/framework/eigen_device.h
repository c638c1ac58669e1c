// The device for Eigen expressions in kernels. Internal: programs call
// OpKernelContext::eigen_device<Eigen::ThreadPoolDevice>().
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_EIGEN_DEVICE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_EIGEN_DEVICE_H_

#include "tensorflow/core/framework/tensor_types.h"

#ifdef GRADFLOW_EIGEN_VIEWS

#include <cstdlib>
#include <functional>
#include <type_traits>
#include <utility>

#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace compat_internal {

// Runs work on the calling thread.
class CallingThread final : public Eigen::ThreadPoolInterface {
 public:
  void Schedule(std::function<void()> work) override { work(); }
  int NumThreads() const override { return 1; }
  int CurrentThreadId() const override { return 0; }
};

// A device of the calling thread. With Eigen's thread pool, threads would wait for each other
// inside the session's threads, and sums would depend on their number.
inline const Eigen::ThreadPoolDevice& CpuDevice() {
  static CallingThread thread;
  static const Eigen::ThreadPoolDevice device(&thread, 1);
  return device;
}

// Returns the device of the given type. Ends the program if it is not the CPU device.
template <typename Device>
const Device& EigenDevice() {
  if constexpr (std::is_same_v<Device, Eigen::ThreadPoolDevice>) {
    return CpuDevice();
  } else if constexpr (std::is_same_v<Device, Eigen::DefaultDevice>) {
    static const Eigen::DefaultDevice device;
    return device;
  } else {
    LOG(FATAL) << "gradflow has no such device: kernels run on the CPU";
    std::abort();  // for compilers that do not see that the line above does not return
  }
}

}  // namespace compat_internal
}  // namespace tensorflow

#endif

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_EIGEN_DEVICE_H_
