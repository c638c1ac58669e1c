// The header of the ops on sounds, of which gradflow has none.
#ifndef GRADFLOW_COMPAT_CC_OPS_AUDIO_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_AUDIO_OPS_H_

#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_AUDIO_OPS_H_
