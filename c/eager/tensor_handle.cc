#include "gradflow/c/eager/tensor_handle.h"

#include <cstring>

#include "absl/strings/match.h"
#include "gradflow/c/eager/context.h"
#include "gradflow/c/eager/device_name.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api_experimental.h"

struct TFE_TensorDebugInfo {
  gradflow::TensorShape shape;
};

namespace gradflow::capi {
namespace {

// Returns fn(*handle), or `otherwise` and an error if the handle is null.
template <typename T, typename F>
T OfHandle(const TFE_TensorHandle* handle, TF_Status* status, T otherwise, F&& fn) {
  T result = otherwise;
  Call(status, [&]() -> absl::Status {
    // TensorFlow's words, which tests compare.
    if (handle == nullptr) return errors::InvalidArgument("Invalid handle");
    GRADFLOW_ASSIGN_OR_RETURN(result, fn(*handle));
    return absl::OkStatus();
  });
  return result;
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::Call;
using gradflow::capi::FromC;
using gradflow::capi::OfHandle;
using gradflow::capi::OrEmpty;
using gradflow::capi::ToC;

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  TFE_TensorHandle* result = nullptr;
  Call(status, [&]() -> absl::Status {
    if (t == nullptr) return gradflow::errors::InvalidArgument("the tensor is null");
    GRADFLOW_ASSIGN_OR_RETURN(gradflow::Tensor tensor, gradflow::capi::TensorFromC(*t));
    result = new TFE_TensorHandle(std::move(tensor));
    return absl::OkStatus();
  });
  return result;
}

TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context*, TF_Tensor* t, TF_Status* status) {
  return TFE_NewTensorHandle(t, status);
}

TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type, void* data, size_t len,
                                                TF_Status* status) {
  TFE_TensorHandle* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(gradflow::Tensor tensor,
                              gradflow::Tensor::Allocate(FromC(data_type), {}));
    const auto size = static_cast<size_t>(gradflow::DataTypeSize(tensor.dtype()));
    if (size == 0 || len < size || data == nullptr) {
      return gradflow::errors::InvalidArgument(len, " bytes are not a scalar of type ",
                                               gradflow::DataTypeString(tensor.dtype()));
    }
    std::memcpy(tensor.data(), data, size);
    result = new TFE_TensorHandle(std::move(tensor));
    return absl::OkStatus();
  });
  return result;
}

TF_Tensor* TFE_AllocateHostTensor(TFE_Context*, TF_DataType dtype, const int64_t* dims,
                                  int num_dims, TF_Status* status) {
  TF_Tensor* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const gradflow::TensorShape shape,
                              gradflow::capi::ShapeFromC(dims, num_dims));
    GRADFLOW_ASSIGN_OR_RETURN(gradflow::Tensor tensor,
                              gradflow::Tensor::Allocate(FromC(dtype), shape));
    GRADFLOW_ASSIGN_OR_RETURN(result, gradflow::capi::TensorToC(std::move(tensor)));
    return absl::OkStatus();
  });
  return result;
}

void TFE_DeleteTensorHandle(TFE_TensorHandle* h) { delete h; }

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) { return ToC(h->tensor.dtype()); }

int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle(h, status, -1, [](const TFE_TensorHandle& handle) -> absl::StatusOr<int> {
    return handle.tensor.dims();
  });
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<int64_t>(h, status, -1,
                           [](const TFE_TensorHandle& handle) -> absl::StatusOr<int64_t> {
                             return handle.tensor.NumElements();
                           });
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status) {
  return OfHandle<int64_t>(
      h, status, -1, [=](const TFE_TensorHandle& handle) -> absl::StatusOr<int64_t> {
        if (dim_index >= 0 && dim_index < handle.tensor.dims()) {
          return handle.tensor.dim_size(dim_index);
        }
        return gradflow::errors::InvalidArgument("the tensor has rank ", handle.tensor.dims(),
                                                 ", and dim_index is ", dim_index);
      });
}

const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<const char*>(h, status, nullptr,
                               [](const TFE_TensorHandle&) -> absl::StatusOr<const char*> {
                                 return gradflow::capi::kCpuName;
                               });
}
const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  return TFE_TensorHandleDeviceName(h, status);
}
const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<const char*>(
      h, status, nullptr,
      [](const TFE_TensorHandle&) -> absl::StatusOr<const char*> { return "CPU"; });
}
int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle(h, status, -1, [](const TFE_TensorHandle&) -> absl::StatusOr<int> { return 0; });
}

TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<TFE_TensorHandle*>(
      h, status, nullptr, [](const TFE_TensorHandle& handle) -> absl::StatusOr<TFE_TensorHandle*> {
        return new TFE_TensorHandle(handle.tensor);
      });
}

TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<TF_Tensor*>(h, status, nullptr,
                              [](const TFE_TensorHandle& handle) -> absl::StatusOr<TF_Tensor*> {
                                return gradflow::capi::TensorToC(handle.tensor);
                              });
}

TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context*,
                                               const char* device_name, TF_Status* status) {
  return OfHandle<TFE_TensorHandle*>(
      h, status, nullptr, [&](const TFE_TensorHandle& handle) -> absl::StatusOr<TFE_TensorHandle*> {
        GRADFLOW_RETURN_IF_ERROR(gradflow::capi::CheckDevice(OrEmpty(device_name)));
        return new TFE_TensorHandle(handle.tensor);
      });
}

void* TFE_TensorHandleDevicePointer(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<void*>(
      h, status, nullptr, [](const TFE_TensorHandle& handle) -> absl::StatusOr<void*> {
        if (gradflow::DataTypeIsPlainBytes(handle.tensor.dtype())) return handle.tensor.data();
        return gradflow::errors::InvalidArgument(
            "the elements of a tensor of type ", gradflow::DataTypeString(handle.tensor.dtype()),
            " have no layout in C; call TFE_TensorHandleResolve() for strings");
      });
}
size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<size_t>(h, status, 0,
                          [](const TFE_TensorHandle& handle) -> absl::StatusOr<size_t> {
                            return handle.tensor.TotalBytes();
                          });
}

void TFE_TensorHandleGetStatus(TFE_TensorHandle*, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}

// ---- Layouts ----

TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h, TF_Status* status) {
  return OfHandle<TFE_TensorDebugInfo*>(
      h, status, nullptr,
      [](const TFE_TensorHandle& handle) -> absl::StatusOr<TFE_TensorDebugInfo*> {
        return new TFE_TensorDebugInfo{handle.tensor.shape()};
      });
}
void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info) { delete debug_info; }
int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info) {
  return debug_info->shape.dims();
}
int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info, int dim_index) {
  return dim_index >= 0 && dim_index < debug_info->shape.dims()
             ? debug_info->shape.dim_size(dim_index)
             : -1;
}
