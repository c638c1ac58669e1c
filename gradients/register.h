// Registers the gradient functions of all ops. Internal: users find them in
// GradientRegistry::Global().
//
// Each family of gradients has a file gradients/FAMILY.cc with a function
// gradflow::gradients::FAMILY::Register. CMakeLists.txt lists the families.
#ifndef GRADFLOW_GRADIENTS_REGISTER_H_
#define GRADFLOW_GRADIENTS_REGISTER_H_

#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

// Registers the gradient functions of all families.
void RegisterAllGradients(GradientRegistry& registry);

}  // namespace gradflow

#endif  // GRADFLOW_GRADIENTS_REGISTER_H_
