// The messages of graph_debug_info.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_DEBUG_INFO_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_DEBUG_INFO_PB_H_

#include "gradflow/proto/graph_debug_info.pb.h"

namespace tensorflow {

using gradflow::GraphDebugInfo;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_DEBUG_INFO_PB_H_
