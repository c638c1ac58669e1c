// Graph, Node and Edge.
#ifndef GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_H_
#define GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_H_

#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {

using gradflow::Edge;
using gradflow::Graph;
using gradflow::Node;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_H_
