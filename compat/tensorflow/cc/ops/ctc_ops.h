// The wrapper classes of ctc_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_CTC_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_CTC_OPS_H_

#include "gradflow/ops/ctc_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_CTC_OPS_H_
