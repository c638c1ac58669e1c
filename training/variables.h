// Variables of a graph, as the optimizers and savers see them.
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
  // The name under which sessions and checkpoints know it: shared_name, or the name of its node.
  std::string name;
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  // True if it is a VarHandleOp.
  bool is_resource = false;
};

// Returns INVALID_ARGUMENT if `variable` is not the output of a node that names a variable.
absl::StatusOr<VariableInfo> InfoOf(const Output& variable);
// Reads a node of a file, which may lack a shared_name.
absl::StatusOr<VariableInfo> InfoOf(const NodeDef& node);

// Adds a variable that sessions and checkpoints know as `name`; a reference if not `is_resource`.
Output NewVariable(const Scope& scope, absl::string_view name, DataType dtype,
                   const PartialTensorShape& shape, bool is_resource = true);
// Adds a read of a variable. Control dependencies of the scope order it.
Output ReadVariable(const Scope& scope, const Output& variable);
// Adds an assignment.
Operation AssignVariable(const Scope& scope, const Output& variable, const Output& value);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_VARIABLES_H_
