// Copies of graphs without the values of large constants, for what only names nodes and shows them.
#ifndef GRADFLOW_TOOLS_LIGHT_GRAPH_H_
#define GRADFLOW_TOOLS_LIGHT_GRAPH_H_

#include <cstdint>

#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// Constants of more elements are shortened. Shape inference reads no value of such a constant.
inline constexpr int64_t kMaxLightElements = 1 << 16;

// Returns a copy of the graph in which a large constant has its first values alone, and repeats the
// last of them. Types, shapes and summaries of attributes are those of the graph. The call moves
// the constants out of *graph and back, so that their bytes are not copied: nothing may read *graph
// until it returns.
GraphDef LightCopy(GraphDef* graph);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_LIGHT_GRAPH_H_
