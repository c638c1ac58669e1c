// The wrapper classes of image_ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_IMAGE_OPS_H_
#define GRADFLOW_COMPAT_CC_OPS_IMAGE_OPS_H_

#include "gradflow/ops/image_ops.h"
#include "tensorflow/cc/ops/const_op.h"

#endif  // GRADFLOW_COMPAT_CC_OPS_IMAGE_OPS_H_
