// NodeBuilder: adds a node to a graph.
#ifndef GRADFLOW_COMPAT_CORE_GRAPH_NODE_BUILDER_H_
#define GRADFLOW_COMPAT_CORE_GRAPH_NODE_BUILDER_H_

#include "gradflow/graph/node_builder.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {

using gradflow::NodeBuilder;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_GRAPH_NODE_BUILDER_H_
