// What the definition of an op says of all its nodes. Not for users.
#ifndef GRADFLOW_RUNTIME_OP_TRAITS_H_
#define GRADFLOW_RUNTIME_OP_TRAITS_H_

#include "gradflow/graph/node.h"

namespace gradflow {

class OpDef;

// Of the attributes of an op, which follow from the types of a node's inputs and outputs: two nodes
// with the same types (as the graph shares them, Node::output_types() are then the same object)
// have the same values of them.
struct AttrsByTypes {
  // All that are types: they decide on the kernel.
  bool types = true;
  // All.
  bool all = true;
};
AttrsByTypes AttrsThatFollowFromTypes(const OpDef& op_def);

// Whether the node has attributes beside those of its op, which the above does not count.
bool HasExtraAttrs(const Node& node);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_OP_TRAITS_H_
