// WaitKernel: the kernel of a node without inputs and outputs, which ends when its control inputs
// have ended. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_WAIT_KERNEL_H_
#define GRADFLOW_RUNTIME_PLAN_WAIT_KERNEL_H_

#include "absl/status/status.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

class WaitKernel final : public OpKernel {
 public:
  absl::Status Compute(KernelContext&) const override { return absl::OkStatus(); }
  bool IsCheap() const override { return true; }
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_WAIT_KERNEL_H_
