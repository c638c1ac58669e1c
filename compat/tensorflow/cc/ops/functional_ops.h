// The wrapper classes of functional_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_FUNCTIONAL_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_FUNCTIONAL_OPS_H_

#include "gradflow/ops/functional_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_FUNCTIONAL_OPS_H_
