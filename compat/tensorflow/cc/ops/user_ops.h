// The header of a program's own ops, of which gradflow has none. gradflow_generate_ops makes the
// wrapper classes of a plugin (docs/custom_ops.md).
#ifndef GRADFLOW_COMPAT_CC_OPS_USER_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_USER_OPS_H_

#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_USER_OPS_H_
