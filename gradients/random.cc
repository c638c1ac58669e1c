// Gradients of the ops of ops/random: the numbers are no functions of their inputs.
#include "gradflow/gradients/register.h"

namespace gradflow {

void RegisterRandomGradients(GradientRegistry& registry) {
  for (const char* const op : {"Multinomial",
                               "RandomShuffle",
                               "RandomStandardNormal",
                               "RandomUniform",
                               "RandomUniformInt",
                               "StatelessMultinomial",
                               "StatelessRandomGetAlg",
                               "StatelessRandomGetKeyCounter",
                               "StatelessRandomGetKeyCounterAlg",
                               "StatelessRandomNormal",
                               "StatelessRandomNormalV2",
                               "StatelessRandomUniform",
                               "StatelessRandomUniformFullInt",
                               "StatelessRandomUniformFullIntV2",
                               "StatelessRandomUniformInt",
                               "StatelessRandomUniformIntV2",
                               "StatelessRandomUniformV2",
                               "StatelessTruncatedNormal",
                               "StatelessTruncatedNormalV2",
                               "TruncatedNormal"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradflow
