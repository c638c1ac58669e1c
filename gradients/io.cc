// Gradients of the ops of ops/io: file operations have no gradient.
#include "gradflow/gradients/gradient_registry.h"

namespace gradflow {

namespace gradients::io {

void Register(GradientRegistry& registry) {
  for (const char* const op : {"MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2", "Save",
                               "SaveSlices", "SaveV2", "ShardedFilename", "ShardedFilespec"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::io

}  // namespace gradflow
