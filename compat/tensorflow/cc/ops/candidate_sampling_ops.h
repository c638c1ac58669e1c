// The wrapper classes of candidate_sampling_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_CANDIDATE_SAMPLING_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_CANDIDATE_SAMPLING_OPS_H_

#include "gradflow/ops/candidate_sampling_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_CANDIDATE_SAMPLING_OPS_H_
