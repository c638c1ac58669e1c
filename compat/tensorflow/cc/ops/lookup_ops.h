// The wrapper classes of lookup_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_LOOKUP_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_LOOKUP_OPS_H_

#include "gradflow/ops/lookup_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_LOOKUP_OPS_H_
