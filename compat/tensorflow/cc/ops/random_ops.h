// The wrapper classes of random_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_RANDOM_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_RANDOM_OPS_H_

#include "gradflow/ops/random_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_RANDOM_OPS_H_
