// The wrapper classes of all ops, and ops::Const.
#ifndef GRADFLOW_COMPAT_CC_OPS_STANDARD_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_STANDARD_OPS_H_

#include "gradflow/ops/standard_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_STANDARD_OPS_H_
