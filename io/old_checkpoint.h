// Checkpoints in TensorFlow's old format: tensors, or slices of tensors, in one file each.
//
// Files are untrusted, as those of checkpoint.h.
#ifndef GRADFLOW_IO_OLD_CHECKPOINT_H_
#define GRADFLOW_IO_OLD_CHECKPOINT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/io/checkpoint.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Writes a file. Returns INVALID_ARGUMENT if a name is empty, or a slice is given twice.
absl::Status WriteOldCheckpoint(const std::string& path,
                                absl::Span<const CheckpointTensor> tensors);

// Reads a tensor, or the slice of it that `shape_and_slice` states, from the files whose names
// match `pattern` ("ckpt-?????-of-00002"). Returns NOT_FOUND if there is no file or no such tensor.
absl::StatusOr<Tensor> ReadOldCheckpoint(
    const std::string& pattern, absl::string_view name, absl::string_view shape_and_slice = {},
    const std::shared_ptr<Allocator>& allocator = SystemAllocator());

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_OLD_CHECKPOINT_H_
