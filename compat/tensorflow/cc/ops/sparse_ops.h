// The wrapper classes of sparse_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_SPARSE_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_SPARSE_OPS_H_

#include "gradflow/ops/sparse_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_SPARSE_OPS_H_
