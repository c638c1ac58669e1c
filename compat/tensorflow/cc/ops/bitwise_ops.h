// The wrapper classes of bitwise_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_BITWISE_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_BITWISE_OPS_H_

#include "gradflow/ops/bitwise_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_BITWISE_OPS_H_
