// Functions that copy, concatenate, split and write tensors.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_UTIL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/type_traits.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace tensor {

// Returns a tensor with a copy of the elements. It is uninitialized if there is not enough memory.
Tensor DeepCopy(const Tensor& other);
// Copies the elements. REQUIRES: both have the same type and number of elements.
void DeepCopy(const Tensor& input, Tensor* output);

// Concatenates tensors along dimension 0. Returns INVALID_ARGUMENT if there are no tensors, a
// tensor is a scalar, or types or other dimensions differ.
absl::Status Concat(gtl::ArraySlice<Tensor> tensors, Tensor* result);
// The inverse: creates a tensor with sizes[i] rows for each i. Returns INVALID_ARGUMENT if `tensor`
// is a scalar, or if the sum of `sizes` is not dimension 0.
absl::Status Split(const Tensor& tensor, gtl::ArraySlice<int64> sizes, std::vector<Tensor>* result);

// Creates a shape from an int32 or int64 vector of sizes. Returns INVALID_ARGUMENT if a size is -1.
absl::Status MakeShape(const Tensor& shape_t, TensorShape* out);

// Shortens a tensor by dropping repetitions of the last element at the end, if it has at least
// `min_num_elements` elements and becomes at least `min_compression_ratio` times smaller. Returns
// true if it was shortened.
bool CompressTensorProtoInPlace(int64 min_num_elements, float min_compression_ratio,
                                TensorProto* tensor);
inline bool CompressTensorProtoInPlace(TensorProto* tensor) {
  return CompressTensorProtoInPlace(64, 2.0f, tensor);
}

// Returns a message with `values` in the list of their type (float_val, ...). The message is empty
// if the number of values does not match `shape`.
template <typename Type, typename Values>
TensorProto CreateTensorProtoOf(const Values& values, gtl::ArraySlice<size_t> shape) {
  TensorShape dims;
  for (const size_t size : shape) dims.AddDim(static_cast<int64>(size));
  TensorProto proto;
  if (!dims.IsValid() || dims.num_elements() != static_cast<int64>(values.size())) return proto;
  Tensor tensor(DataTypeToEnum<Type>::value, dims);
  if (!tensor.IsInitialized()) return proto;
  std::copy(values.begin(), values.end(), tensor.flat<Type>().data());
  tensor.AsProtoField(&proto);
  return proto;
}
template <typename Type>
TensorProto CreateTensorProto(const std::vector<Type>& values, const std::vector<size_t>& shape) {
  return CreateTensorProtoOf<Type>(values, shape);
}
template <typename Type>
TensorProto CreateTensorProtoSpan(gtl::ArraySlice<Type> values, gtl::ArraySlice<size_t> shape) {
  return CreateTensorProtoOf<Type>(values, shape);
}

namespace internal {

// The element type of the message's list of values, and the number of values.
template <typename T>
struct TensorProtoHelper {};
#define GRADFLOW_COMPAT_TENSOR_PROTO_LIST(T, Field, list, fields_per_value) \
  template <>                                                               \
  struct TensorProtoHelper<T> {                                             \
    using FieldType = Field;                                                \
    static int64_t NumValues(const TensorProto& proto) {                    \
      return proto.list().size() / fields_per_value;                        \
    }                                                                       \
  }
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(float, float, float_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(double, double, double_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(int8, int32, int_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(uint8, int32, int_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(int16, int32, int_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(uint16, int32, int_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(int32, int32, int_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(uint32, uint32, uint32_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(int64_t, int64_t, int64_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(uint64_t, uint64_t, uint64_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(bool, bool, bool_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(half, int32, half_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(bfloat16, int32, half_val, 1);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(complex64, float, scomplex_val, 2);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(complex128, double, dcomplex_val, 2);
GRADFLOW_COMPAT_TENSOR_PROTO_LIST(tstring, tstring, string_val, 1);
#undef GRADFLOW_COMPAT_TENSOR_PROTO_LIST

}  // namespace internal

}  // namespace tensor
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_UTIL_H_
