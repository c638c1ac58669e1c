// Checkpoints in TensorFlow's V2 format: named tensors in files.
//
// The checkpoint of the prefix "model/ckpt-5" has an index, "model/ckpt-5.index", with the type,
// the shape, the position and the checksum of each tensor, and data files, such as
// "model/ckpt-5.data-00000-of-00001", with the elements.
//
//   GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open("model/ckpt-5"));
//   GRADFLOW_ASSIGN_OR_RETURN(const Tensor w, checkpoint.Read("w"));
//
// A tensor may be stored in slices, each with its own entry in the index. Entry names are not
// validated, because the keys of slices are binary.
//
// Files are untrusted: stated sizes are compared with the sizes of the files before memory is
// allocated, and all checksums are verified. Inconsistent files return DATA_LOSS with the name of
// the file.
//
// The functions count all memory that depends on files or tensors against the limit of their
// allocator: indexes, buffers and tensors. They touch only files that their FileAccess allows.
#ifndef GRADFLOW_IO_CHECKPOINT_H_
#define GRADFLOW_IO_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/io/file_access.h"

#pragma GCC visibility push(default)
namespace gradflow {

class BundleEntryProto;
class StopToken;

// A tensor or a slice of a tensor to be written.
struct CheckpointTensor {
  // The tensor and its name.
  std::string name;
  Tensor tensor;
  // If not empty, `tensor` is a slice of the tensor `name`: "3 4 0,2:-" for the first two rows of a
  // tensor of shape [3,4].
  std::string shape_and_slice;
};

// Writes a checkpoint with a single data file. The index and the data file are written under
// temporary names and renamed when they are complete. Creates the folder if it does not exist.
// Returns INVALID_ARGUMENT if a name is empty or duplicate, or if slices of a tensor overlap or do
// not fit its shape.
absl::Status WriteCheckpoint(const std::string& prefix, absl::Span<const CheckpointTensor> tensors,
                             const std::shared_ptr<Allocator>& allocator = SystemAllocator(),
                             const FileAccess& files = FileAccess::All());

// Options of MergeCheckpoints.
struct MergeCheckpointsOptions {
  // Removes the folders of the merged checkpoints if they are empty afterwards.
  bool delete_old_dirs = true;
  // Skips checkpoints that do not exist. At least one must exist.
  bool allow_missing_files = false;
};
// Merges several checkpoints into one by renaming their data files. Slices of one tensor may be in
// several checkpoints. Checks that all data files exist before renaming any, and restores their
// names if a later step fails. Returns INVALID_ARGUMENT if the new name of a data file is the name
// of another merged data file.
absl::Status MergeCheckpoints(absl::Span<const std::string> prefixes, const std::string& prefix,
                              const MergeCheckpointsOptions& options = {},
                              const std::shared_ptr<Allocator>& allocator = SystemAllocator(),
                              const FileAccess& files = FileAccess::All());

// An open checkpoint. Copies are cheap; a move is a copy. Thread-safe.
class Checkpoint {
 public:
  // The entry of a tensor in the index.
  struct Info {
    // The type and shape of the whole tensor.
    DataType dtype = DT_INVALID;
    TensorShape shape;
  };

  // Reads the index. Returns NOT_FOUND if the index does not exist, DATA_LOSS if it is not valid,
  // and RESOURCE_EXHAUSTED if its names would take much more memory than the file. Returns
  // CANCELLED soon after `stop` has been stopped; `stop` may be null.
  static absl::StatusOr<Checkpoint> Open(
      const std::string& prefix, const std::shared_ptr<Allocator>& allocator = SystemAllocator(),
      const FileAccess& files = FileAccess::All(), StopToken* stop = nullptr);
  Checkpoint(const Checkpoint&);
  Checkpoint& operator=(const Checkpoint&);
  ~Checkpoint();

  // Returns the names of the tensors, in order. Slices have no names.
  std::vector<std::string> Names() const;
  // Returns Names() without copies. The checkpoint owns the names.
  std::vector<absl::string_view> NameViews() const;
  // Returns NOT_FOUND if there is no such tensor.
  absl::StatusOr<Info> Find(absl::string_view name) const;
  // Reads a tensor, or the slice that `shape_and_slice` states, to memory of `allocator`. Returns
  // CANCELLED soon after `stop` has been stopped; `stop` may be null.
  absl::StatusOr<Tensor> Read(absl::string_view name, absl::string_view shape_and_slice = {},
                              const std::shared_ptr<Allocator>& allocator = SystemAllocator(),
                              StopToken* stop = nullptr) const;

 private:
  struct Impl;
  explicit Checkpoint(std::shared_ptr<const Impl> impl);

  std::shared_ptr<const Impl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_CHECKPOINT_H_
