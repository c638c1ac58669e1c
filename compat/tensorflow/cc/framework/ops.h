// Operation, Output, Input and InputList.
#ifndef GRADFLOW_COMPAT_CC_FRAMEWORK_OPS_H_
#define GRADFLOW_COMPAT_CC_FRAMEWORK_OPS_H_

#include "gradflow/graph/ops.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {

using gradflow::Input;
using gradflow::InputList;
using gradflow::Operation;
using gradflow::Output;
using gradflow::OutputHash;
using gradflow::OutputList;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_FRAMEWORK_OPS_H_
