// Registers the gradient functions of all ops, folder by folder as in ops/. Not for users, who find
// them in GradientRegistry::Global().
#ifndef GRADFLOW_GRADIENTS_REGISTER_H_
#define GRADFLOW_GRADIENTS_REGISTER_H_

#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

void RegisterArrayGradients(GradientRegistry& registry);
void RegisterDecompositionGradients(GradientRegistry& registry);
void RegisterEinsumGradients(GradientRegistry& registry);
void RegisterImageGradients(GradientRegistry& registry);
void RegisterIoGradients(GradientRegistry& registry);
void RegisterLinalgGradients(GradientRegistry& registry);
void RegisterMathGradients(GradientRegistry& registry);
void RegisterNnGradients(GradientRegistry& registry);
void RegisterNormalizationGradients(GradientRegistry& registry);
void RegisterQuantGradients(GradientRegistry& registry);
void RegisterRandomGradients(GradientRegistry& registry);
void RegisterRecurrentGradients(GradientRegistry& registry);
void RegisterSelectionGradients(GradientRegistry& registry);
void RegisterSpectralGradients(GradientRegistry& registry);
void RegisterStateGradients(GradientRegistry& registry);
void RegisterTrainingGradients(GradientRegistry& registry);

inline void RegisterAllGradients(GradientRegistry& registry) {
  RegisterArrayGradients(registry);
  RegisterDecompositionGradients(registry);
  RegisterEinsumGradients(registry);
  RegisterImageGradients(registry);
  RegisterIoGradients(registry);
  RegisterLinalgGradients(registry);
  RegisterMathGradients(registry);
  RegisterNnGradients(registry);
  RegisterNormalizationGradients(registry);
  RegisterQuantGradients(registry);
  RegisterRandomGradients(registry);
  RegisterRecurrentGradients(registry);
  RegisterSelectionGradients(registry);
  RegisterSpectralGradients(registry);
  RegisterStateGradients(registry);
  RegisterTrainingGradients(registry);
}

}  // namespace gradflow

#endif  // GRADFLOW_GRADIENTS_REGISTER_H_
