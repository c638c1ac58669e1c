#include "tensorflow/core/framework/tensor_util.h"

#include <cstring>
#include <utility>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/variant.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace tensor {
namespace {

// Returns the dimensions of a row.
TensorShape RowShape(const Tensor& tensor) {
  TensorShape shape = tensor.shape();
  shape.RemoveDim(0);
  return shape;
}

// Returns the number of elements without repetitions of the last element at the end. REQUIRES:
// tensor.NumElements() > 0
int64 NumWithoutRepetitions(const Tensor& tensor) {
  int64 count = tensor.NumElements();
  if (tensor.dtype() == DT_STRING) {
    const auto strings = tensor.flat<tstring>();
    while (count > 1 && strings(count - 1) == strings(count - 2)) --count;
    return count;
  }
  if (!gradflow::DataTypeIsPlainBytes(tensor.dtype())) return count;
  const char* const data = static_cast<const char*>(tensor.raw_data());
  const size_t size = gradflow::DataTypeSize(tensor.dtype());
  const auto repeats = [&](int64 i) {
    return std::memcmp(data + i * size, data + (i - 1) * size, size) == 0;
  };
  while (count > 1 && repeats(count - 1)) --count;
  return count;
}

}  // namespace

Tensor DeepCopy(const Tensor& other) {
  absl::StatusOr<Tensor> copy = other.DeepCopy();
  return copy.ok() ? *std::move(copy) : Tensor(other.dtype(), TensorShape({-1}));
}

void DeepCopy(const Tensor& input, Tensor* output) {
  if (input.NumElements() == 0) return;
  using ObjectTypes = gradflow::TypeList<tstring, gradflow::ResourceHandle, gradflow::Variant>;
  const bool has_objects = gradflow::DispatchType(ObjectTypes(), input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto elements = input.span<T>();
    std::copy(elements.begin(), elements.end(), output->span<T>().begin());
  });
  if (!has_objects) {
    const auto bytes = input.tensor_data();
    std::memcpy(output->raw_data(), bytes.data(), bytes.size());
  }
}

absl::Status Concat(gtl::ArraySlice<Tensor> tensors, Tensor* result) {
  if (tensors.empty()) return errors::InvalidArgument("there are no tensors to concatenate");
  const Tensor& first = tensors[0];
  int64 rows = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.dims() == 0) return errors::InvalidArgument("a scalar cannot be concatenated");
    if (tensor.dtype() != first.dtype() || RowShape(tensor) != RowShape(first)) {
      return errors::InvalidArgument(
          "a tensor of type ", DataTypeString(tensor.dtype()), " and shape ",
          tensor.shape().DebugString(), " cannot be concatenated with one of type ",
          DataTypeString(first.dtype()), " and shape ", first.shape().DebugString());
    }
    rows += tensor.dim_size(0);
  }
  TensorShape shape = first.shape();
  shape.set_dim(0, rows);
  GRADFLOW_ASSIGN_OR_RETURN(Tensor all, Tensor::Allocate(first.dtype(), shape));
  int64 begin = 0;
  for (const Tensor& tensor : tensors) {
    const int64 end = begin + tensor.dim_size(0);
    Tensor part = all.Slice(begin, end);
    DeepCopy(tensor, &part);
    begin = end;
  }
  *result = std::move(all);
  return absl::OkStatus();
}

absl::Status Split(const Tensor& tensor, gtl::ArraySlice<int64> sizes,
                   std::vector<Tensor>* result) {
  if (tensor.dims() == 0) return errors::InvalidArgument("a scalar cannot be split");
  int64 rows = 0;
  bool valid = true;
  for (const int64 size : sizes) {
    valid = valid && size >= 0 && size <= tensor.dim_size(0) - rows;
    if (valid) rows += size;
  }
  if (!valid || rows != tensor.dim_size(0)) {
    return errors::InvalidArgument("the sizes of the parts must be positive or 0 and add up to ",
                                   tensor.dim_size(0), ", the first dimension of the tensor");
  }
  std::vector<Tensor> parts;
  int64 begin = 0;
  for (const int64 size : sizes) {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor part, tensor.Slice(begin, begin + size).DeepCopy());
    parts.push_back(std::move(part));
    begin += size;
  }
  *result = std::move(parts);
  return absl::OkStatus();
}

absl::Status MakeShape(const Tensor& shape_t, TensorShape* out) {
  std::vector<int64> sizes;
  if (shape_t.dims() == 1 && shape_t.dtype() == DT_INT32) {
    const auto vec = shape_t.span<int32>();
    sizes.assign(vec.begin(), vec.end());
  } else if (shape_t.dims() == 1 && shape_t.dtype() == DT_INT64) {
    const auto vec = shape_t.span<int64>();
    sizes.assign(vec.begin(), vec.end());
  } else {
    return errors::InvalidArgument("a shape must be a vector of int32 or int64, but is ",
                                   DataTypeString(shape_t.dtype()), " of shape ",
                                   shape_t.shape().DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(*out, TensorShape::Make(sizes));
  return absl::OkStatus();
}

bool CompressTensorProtoInPlace(int64 min_num_elements, float min_compression_ratio,
                                TensorProto* tensor) {
  const absl::StatusOr<Tensor> value = gradflow::TensorFromProto(*tensor);
  if (!value.ok() || value->NumElements() == 0 || value->NumElements() < min_num_elements) {
    return false;
  }
  const absl::StatusOr<Tensor> flat = value->Reshaped({value->NumElements()});
  if (!flat.ok()) return false;
  TensorProto compressed;
  flat->Slice(0, NumWithoutRepetitions(*flat)).AsProtoField(&compressed);
  *compressed.mutable_tensor_shape() = tensor->tensor_shape();
  if (static_cast<double>(tensor->ByteSizeLong()) <
      static_cast<double>(min_compression_ratio) * static_cast<double>(compressed.ByteSizeLong())) {
    return false;
  }
  tensor->Swap(&compressed);
  return true;
}

}  // namespace tensor
}  // namespace tensorflow
