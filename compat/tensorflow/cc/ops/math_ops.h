// The wrapper classes of math_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_MATH_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_MATH_OPS_H_

#include "gradflow/ops/math_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_MATH_OPS_H_
