// Shared code of `gradflow checkpoint`, `freeze` and `--checkpoint`: finding a checkpoint, and the
// variables of a graph.
#ifndef GRADFLOW_TOOLS_CHECKPOINTS_H_
#define GRADFLOW_TOOLS_CHECKPOINTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {

// Opens the checkpoint that an argument names: a prefix ("model/ckpt-5"), its index file, or a
// folder, for the latest one.
absl::StatusOr<Checkpoint> OpenCheckpoint(const std::string& argument);

// A node that stands for a variable.
struct VariableNode {
  // The name of the node, and the one under which checkpoints know the variable.
  std::string node;
  std::string name;
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  // True for a VarHandleOp.
  bool is_resource = false;
};
// Returns true, and stores the variable, if the node is one.
bool IsVariable(const NodeDef& node, VariableNode* variable);

// Reads the value of a variable. INVALID_ARGUMENT if it has another type or shape; NOT_FOUND if
// there is none.
absl::StatusOr<Tensor> ReadVariable(const Checkpoint& checkpoint, const VariableNode& variable);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_CHECKPOINTS_H_
