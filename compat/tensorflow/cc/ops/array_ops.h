// The wrapper classes of array_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_ARRAY_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_ARRAY_OPS_H_

#include "gradflow/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_ARRAY_OPS_H_
