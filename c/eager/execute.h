// Executes eager ops.
#ifndef GRADFLOW_C_EAGER_EXECUTE_H_
#define GRADFLOW_C_EAGER_EXECUTE_H_

#include <memory>

#include "absl/status/status.h"
#include "gradflow/c/eager/op.h"

namespace gradflow::capi {

// Adds the node of an op, and a placeholder for each input, to a graph. Stores the node.
absl::Status AddNodeOf(const TFE_Op& op, Graph* graph, const Node** node);

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_EAGER_EXECUTE_H_
