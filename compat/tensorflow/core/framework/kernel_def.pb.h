// The messages of kernel_def.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_PB_H_

#include "gradflow/proto/kernel_def.pb.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace tensorflow {

using gradflow::KernelDef;
using gradflow::KernelDef_AttrConstraint;
using gradflow::KernelList;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_PB_H_
