// Functions for whole GraphDefs.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_DEF_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_DEF_UTIL_H_

#include <set>
#include <string>
#include <utility>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

// Returns human-readable text with one line for each node and function.
std::string SummarizeGraphDef(const GraphDef& graph_def);
// Returns INVALID_ARGUMENT unless each node passes ValidateExternalNodeDefSyntax.
absl::Status ValidateExternalGraphDefSyntax(const GraphDef& graph_def);

// Sets missing attributes with defaults, in the nodes from `node_offset` on and in all functions.
// Returns NOT_FOUND if an op is not registered, unless `skip_unknown_ops`.
absl::Status AddDefaultAttrsToGraphDef(GraphDef* graph_def, const OpRegistryInterface& op_registry,
                                       int node_offset, bool skip_unknown_ops = false);
// Removes attributes that the consumer's op does not have if the value is the default of the
// producer's op. Stores the ops and attributes in *op_attr_removed, unless it is null.
absl::Status RemoveNewDefaultAttrsFromGraphDef(
    GraphDef* graph_def, const OpRegistryInterface& consumer_op_registry,
    const OpRegistryInterface& producer_op_registry,
    std::set<std::pair<std::string, std::string>>* op_attr_removed);
// Removes attributes with default values from nodes whose ops are registered.
void StripDefaultAttributes(const OpRegistryInterface& op_registry,
                            protobuf::RepeatedPtrField<NodeDef>* nodes);

// Returns the ops of the nodes and of the functions that they call, without the functions.
void OpsUsedByGraph(const GraphDef& graph_def, std::set<std::string>* ops_used_in_graph);
// Returns the definitions of these ops without documentation, sorted by name.
absl::Status StrippedOpListForGraph(const GraphDef& graph_def,
                                    const OpRegistryInterface& op_registry,
                                    OpList* stripped_op_list);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_GRAPH_DEF_UTIL_H_
