// The wrapper classes of rnn_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_RNN_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_RNN_OPS_H_

#include "gradflow/ops/rnn_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_RNN_OPS_H_
