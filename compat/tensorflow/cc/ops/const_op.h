// ops::Const.
#ifndef GRADFLOW_COMPAT_CC_OPS_CONST_OP_H_
#define GRADFLOW_COMPAT_CC_OPS_CONST_OP_H_

#include "gradflow/graph/const_op.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"

namespace tensorflow {
namespace ops {

// All of gradflow's: what programs add to tensorflow::ops stands beside it.
using namespace gradflow::ops;  // NOLINT: the names are the point

}  // namespace ops
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_OPS_CONST_OP_H_
