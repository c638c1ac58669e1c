// The wrapper classes of collective_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_COLLECTIVE_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_COLLECTIVE_OPS_H_

#include "gradflow/ops/collective_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_COLLECTIVE_OPS_H_
