// The wrapper classes of logging_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_LOGGING_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_LOGGING_OPS_H_

#include "gradflow/ops/logging_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_LOGGING_OPS_H_
