// The messages of optimized_function_graph.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OPTIMIZED_FUNCTION_GRAPH_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OPTIMIZED_FUNCTION_GRAPH_PB_H_

#include "gradflow/proto/optimized_function_graph.pb.h"

namespace tensorflow {

using gradflow::OptimizedFunctionGraph;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OPTIMIZED_FUNCTION_GRAPH_PB_H_
