// The wrapper classes of control_flow_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_CONTROL_FLOW_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_CONTROL_FLOW_OPS_H_

#include "gradflow/ops/control_flow_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_CONTROL_FLOW_OPS_H_
