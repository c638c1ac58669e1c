// The files of a checkpoint. Internal.
#ifndef GRADFLOW_IO_CHECKPOINT_FILES_H_
#define GRADFLOW_IO_CHECKPOINT_FILES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gradflow::internal {

// Returns the path of the index of a checkpoint, and of one of its data files.
std::string IndexFile(absl::string_view prefix);
std::string DataFile(absl::string_view prefix, int shard, int num_shards);

// Removes the index and all data files of a checkpoint. Files that cannot be removed remain.
void RemoveCheckpoint(const std::string& prefix);

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_CHECKPOINT_FILES_H_
