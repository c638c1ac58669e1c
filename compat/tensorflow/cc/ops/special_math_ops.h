// The wrapper classes of special_math_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_SPECIAL_MATH_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_SPECIAL_MATH_OPS_H_

#include "gradflow/ops/special_math_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_SPECIAL_MATH_OPS_H_
