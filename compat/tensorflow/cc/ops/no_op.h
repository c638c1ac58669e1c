// The wrapper classes of no_op.
#ifndef GRADFLOW_COMPAT_CC_OPS_NO_OP_H_
#define GRADFLOW_COMPAT_CC_OPS_NO_OP_H_

#include "gradflow/ops/no_op.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_NO_OP_H_
