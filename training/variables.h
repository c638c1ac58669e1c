// Variables of a graph, for optimizers and savers.
//
// A variable is the output of a VarHandleOp, or of a Variable or VariableV2.
#ifndef GRADFLOW_TRAINING_VARIABLES_H_
#define GRADFLOW_TRAINING_VARIABLES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

class NodeDef;

namespace training {

// The attributes of a variable.
struct VariableInfo {
  // The name of the variable in sessions and checkpoints: shared_name, or the name of its node.
  std::string name;
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  // True if the variable is a VarHandleOp.
  bool is_resource = false;
};

// Returns INVALID_ARGUMENT if `variable` is not the output of a variable node.
absl::StatusOr<VariableInfo> InfoOf(const Output& variable);
// Overload for a node of a file, which may lack a shared_name.
absl::StatusOr<VariableInfo> InfoOf(const NodeDef& node);

// Adds a variable named `name` in sessions and checkpoints: a VarHandleOp if `is_resource`,
// otherwise a VariableV2.
Output NewVariable(const Scope& scope, absl::string_view name, DataType dtype,
                   const PartialTensorShape& shape, bool is_resource = true);
// Adds a read of a variable, ordered by the control dependencies of the scope.
Output ReadVariable(const Scope& scope, const Output& variable);
// Adds an assignment.
Operation AssignVariable(const Scope& scope, const Output& variable, const Output& value);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_VARIABLES_H_
