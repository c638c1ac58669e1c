// Gradients of the ops of ops/training: updates of variables have no gradient.
#include <string>

#include "absl/strings/str_cat.h"
#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

namespace gradients::training {

void Register(GradientRegistry& registry) {
  for (const char* const optimizer :
       {"AdaMax", "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "Adam", "AddSign",
        "AdamWithAmsgrad", "CenteredRMSProp", "Ftrl", "FtrlV2", "GradientDescent", "KerasMomentum",
        "Momentum", "PowerSign", "ProximalAdagrad", "ProximalGradientDescent", "RMSProp"}) {
    for (const char* const form :
         {"Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"}) {
      registry.RegisterNoGradient(absl::StrCat(form, optimizer));
    }
  }
}

}  // namespace gradients::training

}  // namespace gradflow
