// The messages of cost_graph.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_COST_GRAPH_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_COST_GRAPH_PB_H_

#include "gradflow/proto/cost_graph.pb.h"

namespace tensorflow {

using gradflow::CostGraphDef;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_COST_GRAPH_PB_H_
