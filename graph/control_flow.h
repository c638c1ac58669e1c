// Version 1 control flow: the ops that make branches and loops in one graph. Internal.
//
// A loop is a cycle in the graph. The edge from a NextIteration to a Merge closes the cycle. It is
// the only edge that need not lead to a later node; see IsBackEdge().
#ifndef GRADFLOW_GRAPH_CONTROL_FLOW_H_
#define GRADFLOW_GRAPH_CONTROL_FLOW_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "gradflow/graph/node.h"

namespace gradflow {

// The role of an op in version 1 control flow. Reference forms, such as RefSwitch, have the same
// role.
enum class ControlFlowOp : uint8_t {
  kNone,
  // Includes _SwitchN.
  kSwitch,
  kMerge,
  kEnter,
  kExit,
  kNextIteration,
  kLoopCond,
  kControlTrigger,
};

// Returns the kind of the op of this name.
ControlFlowOp ControlFlowOpOf(absl::string_view op);
// Returns the kind of the node's op. Returns kNone if an op of a program has the name, but not the
// number of inputs and outputs.
ControlFlowOp ControlFlowOpOf(const Node& node);

// Returns true for the edge from a NextIteration to a Merge. `source` is one of consumer.sources().
inline bool IsBackEdge(const Node& consumer, const Node::Source& source) {
  return source.output == 0 && ControlFlowOpOf(consumer) == ControlFlowOp::kMerge &&
         ControlFlowOpOf(*source.node) == ControlFlowOp::kNextIteration;
}

}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_CONTROL_FLOW_H_
