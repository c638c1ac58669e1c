// Copies of graphs without the values of large constants, for what only names nodes and shows them.
#ifndef GRADFLOW_TOOLS_LIGHT_GRAPH_H_
#define GRADFLOW_TOOLS_LIGHT_GRAPH_H_

#include <cstdint>

#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// Constants of more elements are shortened. Shape inference reads no value of such a constant.
inline constexpr int64_t kMaxLightElements = 1 << 16;

// Returns a copy of the graph, in which large constants have their first values and repeat the last
// of them. Types, shapes and summaries of attributes are those of the graph. Changes the constants
// of *graph in the meantime, so that their bytes are not copied.
GraphDef LightCopy(GraphDef* graph);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_LIGHT_GRAPH_H_
