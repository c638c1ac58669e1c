#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

namespace gradients::collective {

// As in TensorFlow, exchanges between ranks have no gradients: a trainer exchanges the gradients.
void Register(GradientRegistry& registry) {
  for (const char* const op :
       {"CollectiveAllToAllV2", "CollectiveAllToAllV3", "CollectiveAssignGroupV2",
        "CollectiveBcastRecv", "CollectiveBcastRecvV2", "CollectiveBcastSend",
        "CollectiveBcastSendV2", "CollectiveGather", "CollectiveGatherV2",
        "CollectiveInitializeCommunicator", "CollectiveReduce", "CollectiveReduceScatterV2",
        "CollectiveReduceV2", "CollectiveReduceV3"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::collective

}  // namespace gradflow
