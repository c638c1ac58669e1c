#include "gradflow/graph/control_flow.h"

#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

ControlFlowOp ControlFlowOpOf(absl::string_view op) {
  // Planning asks for each node. The length rules out most names.
  const auto is = [op](absl::string_view name, ControlFlowOp kind) {
    return op == name ? kind : ControlFlowOp::kNone;
  };
  switch (op.size()) {
    case 4:
      return is("Exit", ControlFlowOp::kExit);
    case 5:
      return op[0] == 'M' ? is("Merge", ControlFlowOp::kMerge) : is("Enter", ControlFlowOp::kEnter);
    case 6:
      return is("Switch", ControlFlowOp::kSwitch);
    case 7:
      return is("RefExit", ControlFlowOp::kExit);
    case 8:
      if (op[0] == 'L') return is("LoopCond", ControlFlowOp::kLoopCond);
      if (op[0] == '_') return is("_SwitchN", ControlFlowOp::kSwitch);
      return op[3] == 'M' ? is("RefMerge", ControlFlowOp::kMerge)
                          : is("RefEnter", ControlFlowOp::kEnter);
    case 9:
      return is("RefSwitch", ControlFlowOp::kSwitch);
    case 13:
      return is("NextIteration", ControlFlowOp::kNextIteration);
    case 14:
      return is("ControlTrigger", ControlFlowOp::kControlTrigger);
    case 16:
      return is("RefNextIteration", ControlFlowOp::kNextIteration);
    default:
      return ControlFlowOp::kNone;
  }
}

ControlFlowOp ControlFlowOpOf(const Node& node) {
  // All nodes of an op share its definition. Reading it is cheaper than reading the node's.
  const ControlFlowOp kind = ControlFlowOpOf(node.op_def().name());
  bool fits = true;
  switch (kind) {
    case ControlFlowOp::kNone:
    case ControlFlowOp::kControlTrigger:
      break;
    case ControlFlowOp::kSwitch:
      fits = node.num_inputs() == 2 && node.num_outputs() >= 1;
      break;
    case ControlFlowOp::kMerge:
      fits = node.num_inputs() >= 1 && node.num_outputs() == 2;
      break;
    default:
      fits = node.num_inputs() == 1 && node.num_outputs() == 1;
  }
  return fits ? kind : ControlFlowOp::kNone;
}

bool Node::IsSwitch() const { return ControlFlowOpOf(*this) == ControlFlowOp::kSwitch; }
bool Node::IsMerge() const { return ControlFlowOpOf(*this) == ControlFlowOp::kMerge; }
bool Node::IsEnter() const { return ControlFlowOpOf(*this) == ControlFlowOp::kEnter; }
bool Node::IsExit() const { return ControlFlowOpOf(*this) == ControlFlowOp::kExit; }
bool Node::IsNextIteration() const {
  return ControlFlowOpOf(*this) == ControlFlowOp::kNextIteration;
}
bool Node::IsLoopCond() const { return ControlFlowOpOf(*this) == ControlFlowOp::kLoopCond; }

}  // namespace gradflow
