// The wrapper classes of io_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_IO_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_IO_OPS_H_

#include "gradflow/ops/io_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_IO_OPS_H_
