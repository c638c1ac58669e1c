// The wrapper classes of nn_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_NN_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_NN_OPS_H_

#include "gradflow/ops/nn_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_NN_OPS_H_
