// Included by tests; it has no names of its own.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_VARIABLE_OPS_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_VARIABLE_OPS_H_

#include "tensorflow/core/framework/op_kernel.h"

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_VARIABLE_OPS_H_
