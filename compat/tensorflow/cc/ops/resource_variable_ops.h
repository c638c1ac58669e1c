// The wrapper classes of resource_variable_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_RESOURCE_VARIABLE_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_RESOURCE_VARIABLE_OPS_H_

#include "gradflow/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_RESOURCE_VARIABLE_OPS_H_
