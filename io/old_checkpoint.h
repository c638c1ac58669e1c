// Checkpoints in TensorFlow's old format. Each file holds tensors or slices of tensors.
//
// Files are untrusted, as in checkpoint.h.
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

// Writes a file. Returns INVALID_ARGUMENT if a name is empty, if slices of a tensor overlap, or if
// a tensor or the file would be larger than the format or its reader allows.
absl::Status WriteOldCheckpoint(const std::string& path, absl::Span<const CheckpointTensor> tensors,
                                const std::shared_ptr<Allocator>& allocator = SystemAllocator(),
                                const FileAccess& files = FileAccess::All());

// Returns the type and shape of each tensor in the files that match `pattern`, keyed by the
// tensor's name. Returns NOT_FOUND if no file matches.
absl::StatusOr<std::map<std::string, Checkpoint::Info>> ListOldCheckpoint(
    const std::string& pattern, const std::shared_ptr<Allocator>& allocator = SystemAllocator());

// A tensor to be read, or a slice of it if `shape_and_slice` is not empty.
struct OldCheckpointRead {
  // The name of the tensor, and the slice in the form of CheckpointTensor::shape_and_slice.
  std::string name;
  std::string shape_and_slice;
};

// Reads tensors from the files that match `pattern` ("ckpt-?????-of-00002"). Each file is read
// once. Returns NOT_FOUND if no file matches or a tensor does not exist. Returns CANCELLED soon
// after `stop` has been stopped; `stop` may be null.
absl::StatusOr<std::vector<Tensor>> ReadOldCheckpoint(
    const std::string& pattern, absl::Span<const OldCheckpointRead> reads,
    const std::shared_ptr<Allocator>& allocator = SystemAllocator(), StopToken* stop = nullptr,
    const FileAccess& files = FileAccess::All());
// Overload for one tensor.
absl::StatusOr<Tensor> ReadOldCheckpoint(
    const std::string& pattern, absl::string_view name, absl::string_view shape_and_slice = {},
    const std::shared_ptr<Allocator>& allocator = SystemAllocator(), StopToken* stop = nullptr,
    const FileAccess& files = FileAccess::All());

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_OLD_CHECKPOINT_H_
