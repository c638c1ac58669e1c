// The namespace ops::internal, which holds the op classes that TensorFlow's C++ API hides. gradflow
// defines these classes in ops. Internal: included by the headers *_internal.h.
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
