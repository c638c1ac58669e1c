// The wrapper classes of string_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_STRING_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_STRING_OPS_H_

#include "gradflow/ops/string_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_STRING_OPS_H_
