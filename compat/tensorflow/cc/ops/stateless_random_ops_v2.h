// The wrapper classes of stateless_random_ops_v2.
#ifndef GRADFLOW_COMPAT_CC_OPS_STATELESS_RANDOM_OPS_V2_H_
#define GRADFLOW_COMPAT_CC_OPS_STATELESS_RANDOM_OPS_V2_H_

#include "gradflow/ops/stateless_random_ops_v2.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_STATELESS_RANDOM_OPS_V2_H_
