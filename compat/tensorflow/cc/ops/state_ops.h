// The wrapper classes of state_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_STATE_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_STATE_OPS_H_

#include "gradflow/ops/state_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_STATE_OPS_H_
