#include "gradflow/c/tensor.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/types/span.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/status.h"
#include "gradflow/core/allocator.h"
#include "gradflow/proto/tensor.pb.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_shape.h"

namespace gradflow::capi {

absl::StatusOr<std::shared_ptr<StringArray>> StringArray::Allocate(int64_t count) {
  const size_t size = static_cast<size_t>(count);
  // A TF_TString whose bytes are 0 is an empty string.
  auto* const data =
      static_cast<TF_TString*>(std::calloc(size == 0 ? 1 : size, sizeof(TF_TString)));
  if (data == nullptr) return errors::ResourceExhausted("out of memory for ", count, " strings");
  try {
    return std::shared_ptr<StringArray>(new StringArray(data, size));
  } catch (...) {
    std::free(data);
    throw;
  }
}

StringArray::~StringArray() {
  if (!owned_) {
    if (deallocator_ != nullptr) deallocator_(data_, len_, arg_);
    return;
  }
  for (size_t i = 0; i < len_ / sizeof(TF_TString); ++i) TF_TString_Dealloc(&data_[i]);
  std::free(data_);
}

absl::StatusOr<TensorShape> ShapeFromC(const int64_t* dims, int num_dims) {
  if (num_dims < 0 || (num_dims > 0 && dims == nullptr)) {
    return errors::InvalidArgument("a shape has ", num_dims, " dimensions",
                                   dims == nullptr ? ", which are null" : "");
  }
  return TensorShape::Make(absl::MakeConstSpan(dims, num_dims));
}

absl::StatusOr<PartialTensorShape> PartialShapeFromC(const int64_t* dims, int num_dims) {
  if (num_dims < 0) return PartialTensorShape();
  if (num_dims > 0 && dims == nullptr) {
    return errors::InvalidArgument("a shape has ", num_dims, " dimensions, which are null");
  }
  return PartialTensorShape::Make(absl::MakeConstSpan(dims, num_dims));
}

absl::StatusOr<Tensor> TensorFromC(const TF_Tensor& tensor) {
  if (!tensor.is_string()) return tensor.tensor;
  GRADFLOW_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(DT_STRING, tensor.string_shape));
  const TF_TString* from = tensor.strings->data();
  for (tstring& to : copy.span<tstring>()) {
    to.assign(TF_TString_GetDataPointer(from), TF_TString_GetSize(from));
    ++from;
  }
  return copy;
}

absl::StatusOr<TF_Tensor*> TensorToC(Tensor&& tensor) {
  auto result = std::make_unique<TF_Tensor>();
  if (tensor.dtype() != DT_STRING) {
    result->tensor = std::move(tensor);
    return result.release();
  }
  GRADFLOW_ASSIGN_OR_RETURN(result->strings, StringArray::Allocate(tensor.NumElements()));
  result->string_shape = tensor.shape();
  TF_TString* to = result->strings->data();
  for (const tstring& from : std::as_const(tensor).span<tstring>()) {
    TF_TString_Copy(to, from.data(), from.size());
    if (TF_TString_GetSize(to) != from.size()) {
      return errors::ResourceExhausted("out of memory for a string of ", from.size(), " bytes");
    }
    ++to;
  }
  return result.release();
}

absl::StatusOr<TF_Tensor*> TensorToC(const Tensor& tensor) { return TensorToC(Tensor(tensor)); }

namespace {

// Returns true if `len` bytes are enough for the elements of a tensor.
bool IsLongEnough(DataType dtype, const TensorShape& shape, size_t len) {
  const size_t size = dtype == DT_STRING ? sizeof(TF_TString) : DataTypeSize(dtype);
  return len / size >= static_cast<size_t>(shape.num_elements());
}

absl::StatusOr<TF_Tensor*> NewTensor(DataType dtype, const int64_t* dims, int num_dims, void* data,
                                     size_t len, StringArray::Deallocator deallocator, void* arg) {
  const auto release = [=] {
    if (deallocator != nullptr) deallocator(data, len, arg);
  };
  // As in TensorFlow, the library owns the memory from here on, even if the arguments are wrong.
  absl::Cleanup release_unused = release;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ShapeFromC(dims, num_dims));
  if (dtype != DT_STRING && !DataTypeIsPlainBytes(dtype)) {
    return errors::InvalidArgument("memory cannot hold elements of type ", DataTypeString(dtype));
  }
  if (!IsLongEnough(dtype, shape, len)) {
    return errors::InvalidArgument(len, " bytes are not enough for shape ", shape.DebugString());
  }
  if (data == nullptr && shape.num_elements() > 0) {
    return errors::InvalidArgument("the memory is null");
  }
  auto result = std::make_unique<TF_Tensor>();
  result->owned = false;
  if (dtype == DT_STRING) {
    if (reinterpret_cast<uintptr_t>(data) % alignof(TF_TString) != 0) {
      return errors::InvalidArgument("memory of strings must start at a multiple of ",
                                     alignof(TF_TString), " bytes");
    }
    result->strings = std::make_shared<StringArray>(data, len, deallocator, arg);
    std::move(release_unused).Cancel();
    result->string_shape = shape;
    return result.release();
  }
  const auto alignment = static_cast<uintptr_t>(DataTypeSize(dtype));
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    GRADFLOW_ASSIGN_OR_RETURN(result->tensor, Tensor::Allocate(dtype, shape));
    const size_t bytes = static_cast<size_t>(shape.num_elements()) * alignment;
    if (bytes > 0) std::memcpy(result->tensor.data(), data, bytes);
    result->owned = true;
    return result.release();
  }
  std::function<void()> release_later = release;
  std::move(release_unused).Cancel();
  GRADFLOW_ASSIGN_OR_RETURN(
      result->tensor,
      Tensor::FromMemory(dtype, shape, data, /*writable=*/false, std::move(release_later)));
  return result.release();
}

absl::StatusOr<TF_Tensor*> AllocateTensor(DataType dtype, const int64_t* dims, int num_dims,
                                          size_t len) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ShapeFromC(dims, num_dims));
  auto result = std::make_unique<TF_Tensor>();
  const bool has_size = dtype == DT_STRING || DataTypeIsPlainBytes(dtype);
  if (has_size && !IsLongEnough(dtype, shape, len)) {
    return errors::InvalidArgument(len, " bytes are not enough for shape ", shape.DebugString());
  }
  if (dtype == DT_STRING) {
    GRADFLOW_ASSIGN_OR_RETURN(result->strings, StringArray::Allocate(shape.num_elements()));
    result->string_shape = shape;
  } else {
    GRADFLOW_ASSIGN_OR_RETURN(result->tensor, Tensor::Allocate(dtype, shape));
  }
  return result.release();
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::TensorShape;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;
using gradflow::capi::FromC;
using gradflow::capi::ShapeFromC;
using gradflow::capi::ToC;

TF_Tensor* TF_NewTensor(TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
                        size_t len, void (*deallocator)(void* data, size_t len, void* arg),
                        void* deallocator_arg) {
  return CallOr<TF_Tensor*>(nullptr, [&] {
    return gradflow::capi::NewTensor(FromC(dtype), dims, num_dims, data, len, deallocator,
                                     deallocator_arg)
        .value_or(nullptr);
  });
}

size_t TF_TensorDefaultAlignment(void) { return gradflow::Allocator::kAlignment; }

TF_Tensor* TF_AllocateTensor(TF_DataType dtype, const int64_t* dims, int num_dims, size_t len) {
  return CallOr<TF_Tensor*>(nullptr, [&] {
    return gradflow::capi::AllocateTensor(FromC(dtype), dims, num_dims, len).value_or(nullptr);
  });
}

TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  if (!tensor->owned) return nullptr;
  const bool alone =
      tensor->is_string() ? tensor->strings.use_count() == 1 : tensor->tensor.CanBeReused();
  return alone ? tensor : nullptr;
}

void TF_DeleteTensor(TF_Tensor* tensor) { delete tensor; }

TF_DataType TF_TensorType(const TF_Tensor* tensor) { return ToC(tensor->dtype()); }

void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims) {
  CallQuietly([&] {
    const absl::StatusOr<TensorShape> shape = ShapeFromC(dims, num_dims);
    if (!shape.ok() || shape->num_elements() != tensor->shape().num_elements()) return;
    if (tensor->is_string()) {
      tensor->string_shape = *shape;
    } else {
      tensor->tensor.CopyFrom(gradflow::Tensor(tensor->tensor), *shape);
    }
  });
}

int TF_NumDims(const TF_Tensor* tensor) { return tensor->shape().dims(); }

int64_t TF_Dim(const TF_Tensor* tensor, int dim_index) {
  const TensorShape& shape = tensor->shape();
  return dim_index >= 0 && dim_index < shape.dims() ? shape.dim_size(dim_index) : -1;
}

size_t TF_TensorByteSize(const TF_Tensor* tensor) {
  const auto count = static_cast<size_t>(tensor->shape().num_elements());
  if (tensor->is_string()) return count * sizeof(TF_TString);
  return count * gradflow::DataTypeSize(tensor->dtype());
}

void* TF_TensorData(const TF_Tensor* tensor) {
  // Bindings make slices of this address, which must not be null even if the slice is empty.
  alignas(64) static char empty[64];
  void* const data = tensor->is_string() ? tensor->strings->data() : tensor->tensor.data();
  return data == nullptr ? empty : data;
}

int64_t TF_TensorElementCount(const TF_Tensor* tensor) { return tensor->shape().num_elements(); }

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                          const int64_t* new_dims, int num_new_dims, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ShapeFromC(new_dims, num_new_dims));
    if (!from->is_string()) {
      gradflow::Tensor cast;
      GRADFLOW_RETURN_IF_ERROR(cast.BitcastFrom(from->tensor, FromC(type), shape));
      to->tensor = std::move(cast);
      to->strings = nullptr;
    } else if (type == TF_STRING && shape.num_elements() == from->string_shape.num_elements()) {
      to->strings = from->strings;
      to->string_shape = shape;
    } else {
      return gradflow::errors::InvalidArgument(
          "a string tensor of shape ", from->string_shape.DebugString(),
          " cannot become a tensor of type ", gradflow::DataTypeString(FromC(type)), " and shape ",
          shape.DebugString());
    }
    to->owned = from->owned;
    return absl::OkStatus();
  });
}

bool TF_TensorIsAligned(const TF_Tensor* tensor) {
  return tensor->is_string() || tensor->tensor.IsAligned();
}

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    gradflow::TensorProto proto;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ParseMessage(from, &proto));
    GRADFLOW_ASSIGN_OR_RETURN(TF_Tensor * result, gradflow::capi::DecodeTensor(proto));
    const std::unique_ptr<TF_Tensor> owned(result);
    *to = std::move(*owned);
    return absl::OkStatus();
  });
}

size_t TF_DataTypeSize(TF_DataType dt) { return gradflow::DataTypeSize(FromC(dt)); }

// ---- TF_TString ----

void TF_StringInit(TF_TString* t) { TF_TString_Init(t); }
void TF_StringCopy(TF_TString* dst, const char* src, size_t size) {
  TF_TString_Copy(dst, src, size);
}
void TF_StringAssignView(TF_TString* dst, const char* src, size_t size) {
  TF_TString_AssignView(dst, src, size);
}
const char* TF_StringGetDataPointer(const TF_TString* tstr) {
  return TF_TString_GetDataPointer(tstr);
}
TF_TString_Type TF_StringGetType(const TF_TString* str) { return TF_TString_GetType(str); }
size_t TF_StringGetSize(const TF_TString* tstr) { return TF_TString_GetSize(tstr); }
size_t TF_StringGetCapacity(const TF_TString* str) { return TF_TString_GetCapacity(str); }
void TF_StringDealloc(TF_TString* tstr) { TF_TString_Dealloc(tstr); }

// ---- TF_Shape ----

struct TF_Shape {
  gradflow::PartialTensorShape shape;
};

TF_Shape* TF_NewShape(void) { return new (std::nothrow) TF_Shape; }
int TF_ShapeDims(const TF_Shape* shape) { return shape->shape.dims(); }
int64_t TF_ShapeDimSize(const TF_Shape* shape, int d) {
  return d >= 0 && d < shape->shape.dims() ? shape->shape.dim_size(d) : -1;
}
void TF_DeleteShape(TF_Shape* shape) { delete shape; }
