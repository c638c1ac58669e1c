// The wrapper classes of training_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_TRAINING_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_TRAINING_OPS_H_

#include "gradflow/ops/training_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_TRAINING_OPS_H_
