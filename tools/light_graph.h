// Copies of graphs without the values of large constants, for code that only shows nodes.
#ifndef GRADFLOW_TOOLS_LIGHT_GRAPH_H_
#define GRADFLOW_TOOLS_LIGHT_GRAPH_H_

#include <cstdint>

#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// Constants with more elements are shortened. Shape inference does not read the values of such
// constants.
inline constexpr int64_t kMaxLightElements = 1 << 16;

// Returns a copy of the graph. Its large constants have only their first values, and repeat the
// last of these values. Constants of the types that KeepFirst() in light_graph.cc does not support
// stay complete. Types, shapes and summaries of attributes do not change. The call moves the large
// constants out of *graph and back, so that their bytes are not copied: nothing may read *graph
// during the call.
GraphDef LightCopy(GraphDef* graph);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_LIGHT_GRAPH_H_
