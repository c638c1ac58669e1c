// The wrapper classes of linalg_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_LINALG_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_LINALG_OPS_H_

#include "gradflow/ops/linalg_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_LINALG_OPS_H_
