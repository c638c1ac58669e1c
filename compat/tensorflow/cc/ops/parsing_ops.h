// The wrapper classes of parsing_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_PARSING_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_PARSING_OPS_H_

#include "gradflow/ops/parsing_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_PARSING_OPS_H_
