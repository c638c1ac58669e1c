// Makes graphs with unregistered ops importable. Internal.
#ifndef GRADFLOW_SAVED_MODEL_MISSING_OPS_H_
#define GRADFLOW_SAVED_MODEL_MISSING_OPS_H_

#include "gradflow/core/registry.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::internal {

// Replaces each node whose op `registry` lacks by a call of a new function that has only this node.
// The call has the node's name, inputs and outputs. A run that needs the call fails with the name
// of the op. Other runs work: a run may feed the outputs of the call, or tensors that depend on
// them. `ops` has the definitions of the ops that the model stores. A node stays unchanged if `ops`
// lacks its op, or if the node does not fit the definition.
void WrapMissingOps(const OpList& ops, const Registry& registry, GraphDef* graph);

}  // namespace gradflow::internal

#endif  // GRADFLOW_SAVED_MODEL_MISSING_OPS_H_
