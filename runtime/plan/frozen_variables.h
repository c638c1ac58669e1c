// Finds frozen variables, which plans use as constants. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_FROZEN_VARIABLES_H_
#define GRADFLOW_RUNTIME_PLAN_FROZEN_VARIABLES_H_

#include <memory>

#include "gradflow/core/resource_manager.h"
#include "gradflow/core/variable.h"
#include "gradflow/graph/node.h"

namespace gradflow {

// Returns the variable of a node that makes a handle or a reference, if the variable is frozen;
// otherwise null.
std::shared_ptr<Variable> FrozenVariableOf(const Node& node, const ResourceManager& resources);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_FROZEN_VARIABLES_H_
