#include "tensorflow/core/util/tensor_slice_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/io/old_checkpoint.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/tensor_slice_text.h"

namespace tensorflow {
namespace checkpoint {

TensorSliceReader::TensorSliceReader(const std::string& file_pattern, OpenTableTensorSliceReaderTag,
                                     int)
    : pattern_(file_pattern) {
  auto tensors = gradflow::ListOldCheckpoint(pattern_);
  status_ = tensors.status();
  if (tensors.ok()) tensors_ = *std::move(tensors);
}

bool TensorSliceReader::HasTensor(const std::string& name, TensorShape* shape,
                                  DataType* type) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return false;
  if (shape != nullptr) *shape = it->second.shape;
  if (type != nullptr) *type = it->second.dtype;
  return true;
}

absl::Status TensorSliceReader::ReadSlice(const std::string& name, const TensorSlice& slice,
                                          Tensor* tensor) const {
  TF_RETURN_IF_ERROR(status_);
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return errors::NotFound("there is no tensor '", name, "'");
  absl::StatusOr<Tensor> read = gradflow::ReadOldCheckpoint(
      pattern_, name, compat_internal::ShapeAndSlice(it->second.shape, slice));
  TF_RETURN_IF_ERROR(read.status());
  *tensor = *std::move(read);
  return absl::OkStatus();
}

absl::Status TensorSliceReader::GetTensor(const std::string& name,
                                          std::unique_ptr<Tensor>* out_tensor) const {
  auto tensor = std::make_unique<Tensor>();
  TF_RETURN_IF_ERROR(ReadSlice(name, TensorSlice(), tensor.get()));
  *out_tensor = std::move(tensor);
  return absl::OkStatus();
}

std::map<std::string, TensorShape> TensorSliceReader::GetVariableToShapeMap() const {
  std::map<std::string, TensorShape> shapes;
  for (const auto& [name, info] : tensors_) shapes[name] = info.shape;
  return shapes;
}

std::map<std::string, DataType> TensorSliceReader::GetVariableToDataTypeMap() const {
  std::map<std::string, DataType> types;
  for (const auto& [name, info] : tensors_) types[name] = info.dtype;
  return types;
}

const std::string TensorSliceReader::DebugString() const {
  std::string text;
  for (const auto& [name, info] : tensors_) {
    absl::StrAppend(&text, name, " (", DataTypeString(info.dtype), ") ", info.shape.DebugString(),
                    "\n");
  }
  return text;
}

}  // namespace checkpoint
}  // namespace tensorflow
