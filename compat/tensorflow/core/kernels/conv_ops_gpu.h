// Included by tests; gradflow has no convolutions on GPUs.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_CONV_OPS_GPU_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_CONV_OPS_GPU_H_

#include "tensorflow/core/framework/op_kernel.h"

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_CONV_OPS_GPU_H_
