// KernelAttrsMatch: compares attributes with the constraints of a kernel.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_UTIL_H_

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

// Stores in *match whether the attributes satisfy all constraints of the kernel. Returns
// INVALID_ARGUMENT if an attribute is missing or has another type, and UNIMPLEMENTED if a
// constraint is not a list of types, integers, strings or booleans.
absl::Status KernelAttrsMatch(const KernelDef& kernel_def, const AttrSlice& attrs, bool* match);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_UTIL_H_
