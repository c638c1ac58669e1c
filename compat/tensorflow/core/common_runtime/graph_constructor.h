// ImportGraphDef and ConvertGraphDefToGraph, at their current path.
#ifndef GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_GRAPH_CONSTRUCTOR_H_
#define GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_GRAPH_CONSTRUCTOR_H_

#include "tensorflow/core/graph/graph_constructor.h"

#endif  // GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_GRAPH_CONSTRUCTOR_H_
