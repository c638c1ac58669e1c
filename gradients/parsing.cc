// Gradients of the ops of ops/parsing: texts and messages have no gradient.
#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

namespace gradients::parsing {

void Register(GradientRegistry& registry) {
  for (const char* const op :
       {"DecodeCSV", "DecodeCompressed", "DecodePaddedRaw", "DecodeRaw", "ParseExample",
        "ParseExampleV2", "ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleExample",
        "ParseSingleSequenceExample", "ParseTensor", "SerializeTensor"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::parsing

}  // namespace gradflow
