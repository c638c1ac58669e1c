// The kernels that the program has registered. Internal.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_REGISTRY_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_REGISTRY_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace compat_internal {

// Adds a kernel for callers that create kernels without a session.
void AddKernel(const gradflow::KernelDef& def, absl::string_view class_name, OpKernelFactory make);

}  // namespace compat_internal
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_REGISTRY_H_
