#include "tensorflow/c/eager/dlpack.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "gradflow/c/eager/tensor_handle.h"
#include "gradflow/c/status.h"
#include "gradflow/core/types.h"

namespace gradflow::capi {
namespace {

// The structs of DLPack, whose layout the specification fixes.
struct DlDevice {
  int32_t type;
  int32_t id;
};
struct DlType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  // The strides count elements. Null means contiguous elements in row-major order.
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor* self);
};

// Calls the deleter, if any. The producer of the tensor has its own declaration of the struct, so
// the function's type is not the one that it is called with.
ABSL_ATTRIBUTE_NO_SANITIZE_UNDEFINED void Delete(DlManagedTensor* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}
constexpr int32_t kCpuDevice = 1;

struct DlTypeOf {
  DataType dtype;
  uint8_t code;
  uint8_t bits;
};
// The codes are: 0 signed, 1 unsigned, 2 floating point, 4 bfloat16, 5 complex, 6 bool.
constexpr DlTypeOf kDlTypes[] = {
    {DT_INT8, 0, 8},       {DT_INT16, 0, 16},       {DT_INT32, 0, 32},  {DT_INT64, 0, 64},
    {DT_UINT8, 1, 8},      {DT_UINT16, 1, 16},      {DT_UINT32, 1, 32}, {DT_UINT64, 1, 64},
    {DT_HALF, 2, 16},      {DT_FLOAT, 2, 32},       {DT_DOUBLE, 2, 64}, {DT_BFLOAT16, 4, 16},
    {DT_COMPLEX64, 5, 64}, {DT_COMPLEX128, 5, 128}, {DT_BOOL, 6, 8},
};

// A DLManagedTensor that gradflow has made, with the memory that it points to.
struct Shared {
  DlManagedTensor managed;
  Tensor tensor;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

absl::StatusOr<Shared*> ToDlPack(const Tensor& tensor) {
  for (const DlTypeOf& type : kDlTypes) {
    if (type.dtype != tensor.dtype()) continue;
    auto shared = std::make_unique<Shared>();
    shared->tensor = tensor;
    shared->shape.assign(tensor.shape().dim_sizes().begin(), tensor.shape().dim_sizes().end());
    shared->strides.resize(shared->shape.size());
    int64_t stride = 1;
    for (size_t d = shared->shape.size(); d-- > 0;) {
      shared->strides[d] = stride;
      stride *= shared->shape[d];
    }
    shared->managed.tensor = {tensor.data(),
                              {kCpuDevice, 0},
                              tensor.dims(),
                              {type.code, type.bits, 1},
                              shared->shape.data(),
                              shared->strides.data(),
                              0};
    shared->managed.context = shared.get();
    shared->managed.deleter = [](DlManagedTensor* self) {
      delete static_cast<Shared*>(self->context);
    };
    return shared.release();
  }
  return errors::InvalidArgument(DataTypeString(tensor.dtype()), " is not supported by dlpack");
}

// Returns true if the elements are contiguous in row-major order. The strides of a dimension of
// size 1 and of a tensor without elements have no meaning.
bool IsContiguous(const DlTensor& tensor, const TensorShape& shape) {
  if (tensor.strides == nullptr || shape.num_elements() == 0) return true;
  int64_t stride = 1;
  for (int d = tensor.ndim; d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != stride) return false;
    stride *= tensor.shape[d];
  }
  return true;
}

// Leaves `managed` to the caller on error.
absl::StatusOr<TFE_TensorHandle*> FromDlPack(DlManagedTensor* managed) {
  if (managed == nullptr) return errors::InvalidArgument("the DLManagedTensor is null");
  const DlTensor& tensor = managed->tensor;
  if (tensor.device.type != kCpuDevice) {
    return errors::InvalidArgument("the tensor is on a device of type ", tensor.device.type,
                                   ", expected ", kCpuDevice, " (CPU)");
  }
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    return errors::InvalidArgument("the tensor has ", tensor.ndim, " dimensions");
  }
  DataType dtype = DT_INVALID;
  for (const DlTypeOf& type : kDlTypes) {
    if (type.code == tensor.dtype.code && type.bits == tensor.dtype.bits) dtype = type.dtype;
  }
  if (dtype == DT_INVALID || tensor.dtype.lanes != 1) {
    return errors::InvalidArgument("there is no type for code ", tensor.dtype.code, ", ",
                                   tensor.dtype.bits, " bits and ", tensor.dtype.lanes, " lanes");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                            TensorShape::Make(absl::MakeConstSpan(tensor.shape, tensor.ndim)));
  if (!IsContiguous(tensor, shape)) {
    return errors::InvalidArgument("Invalid strides array from DLPack");
  }
  const auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  const auto element = static_cast<uintptr_t>(DataTypeSize(dtype));
  const auto count = static_cast<uintptr_t>(shape.num_elements());
  const bool fits = address >= tensor.byte_offset && count <= PTRDIFF_MAX / element &&
                    count * element <= UINTPTR_MAX - address;
  if (count > 0 && (tensor.data == nullptr || !fits)) {
    return errors::InvalidArgument("the memory of ", count, " elements is null or too large");
  }
  if (count > 0 && address % element != 0) {
    return errors::InvalidArgument("the elements are not aligned for their type");
  }
  auto* const data = reinterpret_cast<void*>(address);
  GRADFLOW_ASSIGN_OR_RETURN(
      Tensor result,
      Tensor::FromMemory(dtype, shape, data, /*writable=*/false, [managed] { Delete(managed); }));
  return new TFE_TensorHandle(std::move(result));
}

}  // namespace
}  // namespace gradflow::capi

namespace tensorflow {

using gradflow::capi::Call;
using gradflow::capi::DlManagedTensor;

void* TFE_GetDLDevice(TFE_TensorHandle*, TF_Status* status) {
  static gradflow::capi::DlDevice device = {gradflow::capi::kCpuDevice, 0};
  TF_SetStatus(status, TF_OK, "");
  return &device;
}

void* TFE_HandleToDLPack(TFE_TensorHandle* h, TF_Status* status) {
  void* result = nullptr;
  Call(status, [&]() -> absl::Status {
    if (h == nullptr) return gradflow::errors::InvalidArgument("Invalid handle");
    GRADFLOW_ASSIGN_OR_RETURN(gradflow::capi::Shared * shared, gradflow::capi::ToDlPack(h->tensor));
    result = &shared->managed;
    return absl::OkStatus();
  });
  return result;
}

TFE_TensorHandle* TFE_HandleFromDLPack(void* dlm, TF_Status* status, TFE_Context*) {
  TFE_TensorHandle* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(result,
                              gradflow::capi::FromDlPack(static_cast<DlManagedTensor*>(dlm)));
    return absl::OkStatus();
  });
  return result;
}

void TFE_CallDLManagedTensorDeleter(void* dlm_ptr) {
  auto* const managed = static_cast<DlManagedTensor*>(dlm_ptr);
  if (managed != nullptr) Delete(managed);
}

}  // namespace tensorflow
