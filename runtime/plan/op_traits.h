// Traits of nodes that follow from their ops. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_OP_TRAITS_H_
#define GRADFLOW_RUNTIME_PLAN_OP_TRAITS_H_

#include "gradflow/graph/node.h"

namespace gradflow {

class OpDef;

// Attributes of an op that follow from the types of a node's inputs and outputs. Two nodes with the
// same types have the same values of these attributes; the graph shares type lists, so their
// Node::output_types() are the same object.
struct AttrsByTypes {
  // True if all type attributes follow. They determine the kernel.
  bool types = true;
  // True if all attributes follow.
  bool all = true;
};
AttrsByTypes AttrsThatFollowFromTypes(const OpDef& op_def);

bool IsPlaceholder(const Node& node);

// Returns true if the node's outputs are a function of its inputs and attributes alone, according
// to its op. Placeholders and the ops of version 1 control flow are not pure.
bool IsPure(const Node& node);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_OP_TRAITS_H_
