// The wrapper classes of spectral_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_SPECTRAL_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_SPECTRAL_OPS_H_

#include "gradflow/ops/spectral_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_SPECTRAL_OPS_H_
