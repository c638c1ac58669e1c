// The wrapper classes of stateless_random_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_STATELESS_RANDOM_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_STATELESS_RANDOM_OPS_H_

#include "gradflow/ops/stateless_random_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_STATELESS_RANDOM_OPS_H_
