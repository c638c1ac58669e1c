// TensorSliceReader: reads checkpoints in TensorFlow's old format (gradflow/io/old_checkpoint.h).
#ifndef GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_READER_H_
#define GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_READER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "gradflow/io/checkpoint.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace checkpoint {

// Opens a file. OpenTableTensorSliceReader is the only format.
struct OpenTableTensorSliceReaderTag {};
inline constexpr OpenTableTensorSliceReaderTag OpenTableTensorSliceReader;

// The files that match a pattern. Each call reads them again. Thread-safe.
class TensorSliceReader {
 public:
  static constexpr int kLoadAllShards = -1;

  explicit TensorSliceReader(const std::string& file_pattern,
                             OpenTableTensorSliceReaderTag = OpenTableTensorSliceReader,
                             int /*preferred_shard*/ = kLoadAllShards);
  absl::Status status() const { return status_; }
  // Returns false if the tensor does not exist. The pointers may be null.
  bool HasTensor(const std::string& name, TensorShape* shape, DataType* type) const;
  // Stores a new tensor.
  absl::Status GetTensor(const std::string& name, std::unique_ptr<Tensor>* out_tensor) const;
  // Copies a slice to `data`, which must have room for its elements. Returns false if the files
  // lack some of the elements or have another type.
  template <typename T>
  bool CopySliceData(const std::string& name, const TensorSlice& slice, T* data) const {
    Tensor tensor;
    if (!ReadSlice(name, slice, &tensor).ok() || tensor.dtype() != DataTypeToEnum<T>::value) {
      return false;
    }
    // Views of half have Eigen's type.
    const auto flat = tensor.flat<T>();
    for (int64_t i = 0; i < tensor.NumElements(); ++i) data[i] = flat(i);
    return true;
  }
  // Returns the shapes of the tensors by name.
  std::map<std::string, TensorShape> GetVariableToShapeMap() const;
  std::map<std::string, DataType> GetVariableToDataTypeMap() const;
  const std::string DebugString() const;

 private:
  absl::Status ReadSlice(const std::string& name, const TensorSlice& slice, Tensor* tensor) const;

  const std::string pattern_;
  absl::Status status_;
  std::map<std::string, gradflow::Checkpoint::Info> tensors_;
};

}  // namespace checkpoint
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_TENSOR_SLICE_READER_H_
