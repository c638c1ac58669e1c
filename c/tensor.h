// TF_Tensor: a Tensor, or an array of TF_TStrings.
//
// A numeric tensor shares its elements with the Tensor that it was made from, or that is made from
// it. Resources and variants are Tensors too, whose elements C programs cannot read. Strings have
// another layout in C, so they are copied at the border.
#ifndef GRADFLOW_C_TENSOR_H_
#define GRADFLOW_C_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

namespace gradflow::capi {

// The memory of a string tensor.
class StringArray {
 public:
  using Deallocator = void (*)(void* data, size_t len, void* arg);

  // Allocates `count` empty strings. They are freed with the array.
  static absl::StatusOr<std::shared_ptr<StringArray>> Allocate(int64_t count);
  // Takes memory of the caller. Calls `deallocator`, which may be null, with the array.
  StringArray(void* data, size_t len, Deallocator deallocator, void* arg)
      : data_(static_cast<TF_TString*>(data)), len_(len), deallocator_(deallocator), arg_(arg) {}
  ~StringArray();
  StringArray(const StringArray&) = delete;
  StringArray& operator=(const StringArray&) = delete;

  TF_TString* data() const { return data_; }
  bool owned() const { return owned_; }

 private:
  explicit StringArray(TF_TString* data, size_t count)
      : data_(data), len_(count * sizeof(TF_TString)), owned_(true) {}

  TF_TString* data_;
  size_t len_;
  bool owned_ = false;
  Deallocator deallocator_ = nullptr;
  void* arg_ = nullptr;
};

}  // namespace gradflow::capi

struct TF_Tensor {
  // The elements of all types except strings.
  gradflow::Tensor tensor;
  // The shape and elements of string tensors.
  gradflow::TensorShape string_shape;
  std::shared_ptr<gradflow::capi::StringArray> strings;
  // True if the memory was allocated by the library.
  bool owned = true;

  bool is_string() const { return strings != nullptr; }
  const gradflow::TensorShape& shape() const { return is_string() ? string_shape : tensor.shape(); }
  gradflow::DataType dtype() const { return is_string() ? gradflow::DT_STRING : tensor.dtype(); }
};

namespace gradflow::capi {

inline DataType FromC(TF_DataType dtype) { return static_cast<DataType>(dtype); }
inline TF_DataType ToC(DataType dtype) { return static_cast<TF_DataType>(dtype); }

// Returns the shape with these dimensions.
absl::StatusOr<TensorShape> ShapeFromC(const int64_t* dims, int num_dims);
// Returns the partial shape with these dimensions. -1 is an unknown dimension, and a negative
// `num_dims` is an unknown rank.
absl::StatusOr<PartialTensorShape> PartialShapeFromC(const int64_t* dims, int num_dims);

// Returns the Tensor of a TF_Tensor. Copies strings.
absl::StatusOr<Tensor> TensorFromC(const TF_Tensor& tensor);
// Returns a new TF_Tensor, which shares the elements unless they are strings.
absl::StatusOr<TF_Tensor*> TensorToC(const Tensor& tensor);
absl::StatusOr<TF_Tensor*> TensorToC(Tensor&& tensor);

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_TENSOR_H_
