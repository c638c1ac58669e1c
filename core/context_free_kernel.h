// ContextFreeKernel: a kernel that can also run without a context. Internal.
#ifndef GRADFLOW_CORE_CONTEXT_FREE_KERNEL_H_
#define GRADFLOW_CORE_CONTEXT_FREE_KERNEL_H_

#pragma GCC visibility push(default)
namespace gradflow {

// Interface of kernels in C. Programs for TensorFlow may run such a kernel with a null context.
class ContextFreeKernel {
 public:
  virtual ~ContextFreeKernel() = default;
  // Runs the kernel, which can neither read inputs nor set outputs.
  virtual void ComputeWithoutContext() const = 0;

 protected:
  ContextFreeKernel() = default;
  ContextFreeKernel(const ContextFreeKernel&) = default;
  ContextFreeKernel& operator=(const ContextFreeKernel&) = default;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_CONTEXT_FREE_KERNEL_H_
