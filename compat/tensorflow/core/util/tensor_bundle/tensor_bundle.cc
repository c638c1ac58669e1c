#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/tensor_slice_text.h"

namespace tensorflow {

absl::Status BundleWriter::Add(absl::string_view key, const Tensor& value) {
  TF_RETURN_IF_ERROR(status_);
  if (names_.contains(key)) {
    status_ = errors::InvalidArgument("Adding duplicate key: ", key);
    return status_;
  }
  return AddCopy(key, value, "");
}

absl::Status BundleWriter::AddSlice(absl::string_view full_key, const TensorShape& full_shape,
                                    const TensorSlice& slice, const Tensor& value) {
  TF_RETURN_IF_ERROR(status_);
  return AddCopy(full_key, value, compat_internal::ShapeAndSlice(full_shape, slice));
}

absl::Status BundleWriter::AddCopy(absl::string_view key, const Tensor& value, std::string slice) {
  absl::StatusOr<Tensor> copy = value.DeepCopy();
  status_ = copy.status();
  TF_RETURN_IF_ERROR(status_);
  names_.insert(std::string(key));
  tensors_.push_back({std::string(key), *std::move(copy), std::move(slice)});
  return absl::OkStatus();
}

absl::Status BundleWriter::Finish() {
  if (status_.ok()) status_ = gradflow::WriteCheckpoint(prefix_, tensors_);
  return status_;
}

absl::Status MergeBundles(Env*, gtl::ArraySlice<tstring> prefixes, absl::string_view merged_prefix,
                          bool allow_missing_files) {
  gradflow::MergeCheckpointsOptions options;
  options.delete_old_dirs = false;
  options.allow_missing_files = allow_missing_files;
  return gradflow::MergeCheckpoints(prefixes, std::string(merged_prefix), options);
}

BundleReader::BundleReader(Env*, absl::string_view prefix) {
  absl::StatusOr<gradflow::Checkpoint> checkpoint = gradflow::Checkpoint::Open(std::string(prefix));
  status_ = checkpoint.status();
  if (checkpoint.ok()) checkpoint_ = *std::move(checkpoint);
}

bool BundleReader::Contains(absl::string_view key) const {
  return status_.ok() && checkpoint_->Find(key).ok();
}

absl::Status BundleReader::LookupDtypeAndShape(absl::string_view key, DataType* dtype,
                                               TensorShape* shape) const {
  TF_RETURN_IF_ERROR(status_);
  const absl::StatusOr<gradflow::Checkpoint::Info> info = checkpoint_->Find(key);
  TF_RETURN_IF_ERROR(info.status());
  *dtype = info->dtype;
  *shape = info->shape;
  return absl::OkStatus();
}

absl::Status BundleReader::LookupTensorShape(absl::string_view key, TensorShape* shape) const {
  DataType dtype;
  return LookupDtypeAndShape(key, &dtype, shape);
}

absl::Status BundleReader::Lookup(absl::string_view key, Tensor* value) const {
  TF_RETURN_IF_ERROR(status_);
  absl::StatusOr<Tensor> tensor = checkpoint_->Read(key);
  TF_RETURN_IF_ERROR(tensor.status());
  *value = *std::move(tensor);
  return absl::OkStatus();
}

absl::Status BundleReader::LookupSlice(absl::string_view full_key, const TensorSlice& slice,
                                       Tensor* value) const {
  TensorShape shape;
  TF_RETURN_IF_ERROR(LookupTensorShape(full_key, &shape));
  absl::StatusOr<Tensor> tensor =
      checkpoint_->Read(full_key, compat_internal::ShapeAndSlice(shape, slice));
  TF_RETURN_IF_ERROR(tensor.status());
  *value = *std::move(tensor);
  return absl::OkStatus();
}

std::string BundleReader::DebugString() const {
  if (!status_.ok()) return status_.ToString();
  std::string text;
  for (const std::string& name : checkpoint_->Names()) {
    const absl::StatusOr<gradflow::Checkpoint::Info> info = checkpoint_->Find(name);
    if (!info.ok()) continue;
    absl::StrAppend(&text, name, " (", DataTypeString(info->dtype), ") ", info->shape.DebugString(),
                    "\n");
  }
  return text;
}

}  // namespace tensorflow
