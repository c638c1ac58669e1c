// The wrapper classes of manip_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_MANIP_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_MANIP_OPS_H_

#include "gradflow/ops/manip_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_MANIP_OPS_H_
