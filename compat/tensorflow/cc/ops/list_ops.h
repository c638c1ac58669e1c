// The wrapper classes of list_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_LIST_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_LIST_OPS_H_

#include "gradflow/ops/list_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_LIST_OPS_H_
