// Gradients of the ops of ops/io: files have none.
#include "gradflow/gradients/register.h"

namespace gradflow {

void RegisterIoGradients(GradientRegistry& registry) {
  for (const char* const op : {"MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2", "Save",
                               "SaveSlices", "SaveV2", "ShardedFilename", "ShardedFilespec"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradflow
