// The messages of op_def.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_PB_H_

#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {

using gradflow::OpDef;
using gradflow::OpDeprecation;
using gradflow::OpList;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_PB_H_
