// BundleWriter and BundleReader: checkpoints in TensorFlow's V2 format (gradflow/io/checkpoint.h).
#ifndef GRADFLOW_COMPAT_CORE_UTIL_TENSOR_BUNDLE_TENSOR_BUNDLE_H_
#define GRADFLOW_COMPAT_CORE_UTIL_TENSOR_BUNDLE_TENSOR_BUNDLE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gradflow/io/checkpoint.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

// Collects copies of tensors. Finish() writes them. Not thread-safe.
class BundleWriter {
 public:
  BundleWriter(Env*, absl::string_view prefix) : prefix_(prefix) {}
  // Returns INVALID_ARGUMENT if a tensor of this name exists.
  absl::Status Add(absl::string_view key, const Tensor& value);
  // Adds a slice of a tensor of shape `full_shape`.
  absl::Status AddSlice(absl::string_view full_key, const TensorShape& full_shape,
                        const TensorSlice& slice, const Tensor& value);
  // Writes the files. Call it once.
  absl::Status Finish();
  absl::Status status() const { return status_; }

 private:
  absl::Status AddCopy(absl::string_view key, const Tensor& value, std::string slice);

  const std::string prefix_;
  std::vector<gradflow::CheckpointTensor> tensors_;
  absl::flat_hash_set<std::string> names_;
  absl::Status status_;
};

// Merges several checkpoints into one.
absl::Status MergeBundles(Env* env, gtl::ArraySlice<tstring> prefixes,
                          absl::string_view merged_prefix, bool allow_missing_files = false);

// Reads tensors by name. Thread-safe.
class BundleReader {
 public:
  BundleReader(Env*, absl::string_view prefix);
  // Returns the error from reading the index.
  absl::Status status() const { return status_; }
  bool Contains(absl::string_view key) const;
  // Return NOT_FOUND if the tensor does not exist.
  absl::Status LookupDtypeAndShape(absl::string_view key, DataType* dtype,
                                   TensorShape* shape) const;
  absl::Status LookupTensorShape(absl::string_view key, TensorShape* shape) const;
  absl::Status Lookup(absl::string_view key, Tensor* value) const;
  absl::Status LookupSlice(absl::string_view full_key, const TensorSlice& slice,
                           Tensor* value) const;
  // Returns a line per tensor: its name, type and shape.
  std::string DebugString() const;

 private:
  absl::Status status_;
  // Empty if there is an error.
  std::optional<gradflow::Checkpoint> checkpoint_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_TENSOR_BUNDLE_TENSOR_BUNDLE_H_
