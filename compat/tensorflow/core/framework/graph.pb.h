// The messages of graph.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_PB_H_

#include "gradflow/proto/graph.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/versions.pb.h"

namespace tensorflow {

using gradflow::GraphDef;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_PB_H_
