// DeviceBase: the device that runs a kernel, which is always the CPU. Gives access to its threads.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_BASE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_BASE_H_

#include <functional>
#include <string>

#include "gradflow/core/run_context.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/eigen_device.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

class Env;

// Takes absl::Status, which converts to the Status of either kind of program.
using StatusCallback = std::function<void(const absl::Status&)>;

class Device;

// A stream of another device. The CPU has no streams: gradflow never calls a program's streams.
class DeviceContext : public core::RefCounted {
 public:
  virtual void CopyTensorInSameDevice(const Tensor*, Device*, Tensor*, StatusCallback done) const {
    done(errors::Unimplemented("the device context copies no tensors"));
  }
};

class DeviceBase {
 public:
  struct CpuWorkerThreads {
    int num_threads = 0;
    thread::ThreadPool* workers = nullptr;
  };

  explicit DeviceBase(Env* env) : DeviceBase(nullptr, env) {}
  // The device of a run. The run must outlive the device.
  explicit DeviceBase(const gradflow::RunContext& run) : DeviceBase(&run, Env::Default()) {}
  DeviceBase(const DeviceBase&) = delete;
  DeviceBase& operator=(const DeviceBase&) = delete;
  virtual ~DeviceBase() = default;

  Env* env() const { return env_; }
  virtual Allocator* GetAllocator(AllocatorAttributes) { return cpu_allocator(); }
  // gradflow has no scoped allocators, and never calls this function.
  virtual Allocator* GetScopedAllocator(AllocatorAttributes, int64_t /*step_id*/) {
    return nullptr;
  }
  // Calls `done` with the status of the copy.
  virtual void CopyTensorInSameDevice(const Tensor* input, Tensor* output, const DeviceContext*,
                                      StatusCallback done);
  virtual bool RequiresRecordingAccessedTensors() const { return false; }
  // Returns the name and the type of the device.
  virtual const DeviceAttributes& attributes() const;
  virtual const std::string& name() const;
  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const { return &threads_; }
#ifdef GRADFLOW_EIGEN_VIEWS
  const Eigen::ThreadPoolDevice* eigen_cpu_device() const { return &compat_internal::CpuDevice(); }
#endif

 private:
  DeviceBase(const gradflow::RunContext* run, Env* env)
      : env_(env), workers_(run), threads_{workers_.NumThreads(), &workers_} {}

  Env* const env_;
  thread::ThreadPool workers_;
  const CpuWorkerThreads threads_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_BASE_H_
