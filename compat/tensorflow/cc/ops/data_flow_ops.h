// The wrapper classes of data_flow_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_DATA_FLOW_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_DATA_FLOW_OPS_H_

#include "gradflow/ops/data_flow_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_DATA_FLOW_OPS_H_
