// The namespace ops::internal: the classes of ops that TensorFlow's C++ API hides. gradflow has
// them in ops. Internal: the headers *_internal.h include it.
#ifndef GRADFLOW_COMPAT_CC_OPS_INTERNAL_NAMES_H_
#define GRADFLOW_COMPAT_CC_OPS_INTERNAL_NAMES_H_

#include "tensorflow/cc/ops/const_op.h"

namespace tensorflow {
namespace ops {
namespace internal {

using namespace gradflow::ops;  // NOLINT: see const_op.h

}  // namespace internal
}  // namespace ops
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_OPS_INTERNAL_NAMES_H_
