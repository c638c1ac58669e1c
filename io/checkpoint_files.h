// The files of a checkpoint. Internal.
#ifndef GRADFLOW_IO_CHECKPOINT_FILES_H_
#define GRADFLOW_IO_CHECKPOINT_FILES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "gradflow/core/types.h"

namespace gradflow::internal {

// Returns true if checkpoints store elements of this type.
inline bool IsStored(DataType dtype) { return DataTypeIsPlainBytes(dtype) || dtype == DT_STRING; }

// Return the paths of the index and of a data file of a checkpoint.
std::string IndexFile(absl::string_view prefix);
std::string DataFile(absl::string_view prefix, int shard, int num_shards);

// Removes the index and all data files of a checkpoint. Files that cannot be removed remain.
void RemoveCheckpoint(const std::string& prefix);

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_CHECKPOINT_FILES_H_
