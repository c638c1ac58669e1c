// The messages of node_def.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_PB_H_

#include "gradflow/proto/node_def.pb.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace tensorflow {

using gradflow::NodeDef;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NODE_DEF_PB_H_
