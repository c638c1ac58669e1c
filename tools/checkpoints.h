// Code for `gradflow checkpoint`, `freeze` and `--checkpoint`: finds checkpoints, and the variables
// of a graph.
#ifndef GRADFLOW_TOOLS_CHECKPOINTS_H_
#define GRADFLOW_TOOLS_CHECKPOINTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/training/variables.h"

namespace gradflow::tools {

// Opens the checkpoint that an argument names: a prefix ("model/ckpt-5"), an index file, or a
// folder, which stands for its latest checkpoint. Charges the index to the allocator.
absl::StatusOr<Checkpoint> OpenCheckpoint(
    const std::string& argument, const std::shared_ptr<Allocator>& allocator = SystemAllocator());

// A node that creates a variable.
struct VariableNode {
  // The name of the node. The name of the variable differs if there is a shared_name.
  std::string node;
  training::VariableInfo info;
};
// Returns true and stores the variable if the node creates a variable.
bool IsVariable(const NodeDef& node, VariableNode* variable);

// Reads the value of a variable. INVALID_ARGUMENT if it has another type or shape; NOT_FOUND if
// there is none.
absl::StatusOr<Tensor> ReadVariable(
    const Checkpoint& checkpoint, const VariableNode& variable,
    const std::shared_ptr<Allocator>& allocator = SystemAllocator());

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_CHECKPOINTS_H_
