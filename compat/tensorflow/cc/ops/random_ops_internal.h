// ops::internal: the classes of random_ops that TensorFlow's C++ API hides. gradflow has them in
// ops.
#ifndef GRADFLOW_COMPAT_CC_OPS_RANDOM_OPS_INTERNAL_H_
#define GRADFLOW_COMPAT_CC_OPS_RANDOM_OPS_INTERNAL_H_

#include "tensorflow/cc/ops/random_ops.h"

namespace tensorflow {
namespace ops {
namespace internal {

using namespace gradflow::ops;  // NOLINT: see const_op.h

}  // namespace internal
}  // namespace ops
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_OPS_RANDOM_OPS_INTERNAL_H_
