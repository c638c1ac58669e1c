// Lists the kernels of ops.
#ifndef GRADFLOW_C_KERNEL_LIST_H_
#define GRADFLOW_C_KERNEL_LIST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"

namespace gradflow::capi {

// A kernel, and the arguments that it wants in host memory.
struct CKernelInfo {
  KernelRegistration registration;
  std::vector<std::string> host_arguments;
};

// Returns the kernels of one op, or of all ops if `op` is null. The registry has no list of
// kernels: asks it for the kernel for the CPU of each combination of types. Leaves out kernels of
// gradflow that have a label.
std::vector<CKernelInfo> RegisteredKernels(const Registry& registry, const char* op);

// Returns true if the kernel was registered by TF_RegisterKernelBuilder().
bool IsCKernel(const KernelRegistration& kernel);
// Returns all such kernels of an op.
std::vector<CKernelInfo> CKernelsOf(absl::string_view op);

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_KERNEL_LIST_H_
