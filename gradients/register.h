// Registers the gradient functions of all ops, folder by folder as in ops/. Not for users, who find
// them in GradientRegistry::Global().
#ifndef GRADFLOW_GRADIENTS_REGISTER_H_
#define GRADFLOW_GRADIENTS_REGISTER_H_

#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

void RegisterArrayGradients(GradientRegistry& registry);
void RegisterIoGradients(GradientRegistry& registry);
void RegisterLinalgGradients(GradientRegistry& registry);
void RegisterMathGradients(GradientRegistry& registry);
void RegisterNnGradients(GradientRegistry& registry);
void RegisterQuantGradients(GradientRegistry& registry);
void RegisterRandomGradients(GradientRegistry& registry);
void RegisterStateGradients(GradientRegistry& registry);
void RegisterTrainingGradients(GradientRegistry& registry);

inline void RegisterAllGradients(GradientRegistry& registry) {
  RegisterArrayGradients(registry);
  RegisterIoGradients(registry);
  RegisterLinalgGradients(registry);
  RegisterMathGradients(registry);
  RegisterNnGradients(registry);
  RegisterQuantGradients(registry);
  RegisterRandomGradients(registry);
  RegisterStateGradients(registry);
  RegisterTrainingGradients(registry);
}

}  // namespace gradflow

#endif  // GRADFLOW_GRADIENTS_REGISTER_H_
