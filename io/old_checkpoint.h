// Checkpoints in TensorFlow's old format: tensors, or slices of tensors, in one file each.
//
// Files are untrusted, as those of checkpoint.h.
#ifndef GRADFLOW_IO_OLD_CHECKPOINT_H_
#define GRADFLOW_IO_OLD_CHECKPOINT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/io/checkpoint.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Writes a file. Returns INVALID_ARGUMENT if a name is empty, if a slice is given twice, or if a
// tensor or the file would be larger than the format or its reader allows.
absl::Status WriteOldCheckpoint(const std::string& path, absl::Span<const CheckpointTensor> tensors,
                                const std::shared_ptr<Allocator>& allocator = SystemAllocator(),
                                const FileAccess& files = FileAccess::All());

// Returns the types and the shapes of the tensors of the files whose names match `pattern`, by
// their names. Returns NOT_FOUND if there is no file.
absl::StatusOr<std::map<std::string, Checkpoint::Info>> ListOldCheckpoint(
    const std::string& pattern, const std::shared_ptr<Allocator>& allocator = SystemAllocator());

// A tensor to be read, or the slice of it that `shape_and_slice` states if that is not empty.
struct OldCheckpointRead {
  // The name of the tensor, and the slice in the form of CheckpointTensor::shape_and_slice.
  std::string name;
  std::string shape_and_slice;
};

// Reads tensors from the files whose names match `pattern` ("ckpt-?????-of-00002"), each of which
// is read once. Returns NOT_FOUND if there is no file, or not one of the tensors; CANCELLED soon
// after `stop`, which may be null, has been stopped.
absl::StatusOr<std::vector<Tensor>> ReadOldCheckpoint(
    const std::string& pattern, absl::Span<const OldCheckpointRead> reads,
    const std::shared_ptr<Allocator>& allocator = SystemAllocator(), RunStop* stop = nullptr,
    const FileAccess& files = FileAccess::All());
// Overload for one tensor.
absl::StatusOr<Tensor> ReadOldCheckpoint(
    const std::string& pattern, absl::string_view name, absl::string_view shape_and_slice = {},
    const std::shared_ptr<Allocator>& allocator = SystemAllocator(), RunStop* stop = nullptr,
    const FileAccess& files = FileAccess::All());

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_OLD_CHECKPOINT_H_
