// Exchange of tensors with other libraries by DLPack, without a copy. The pointers are
// DLManagedTensor* and DLDevice* of dlpack.h, version 0.
#ifndef GRADFLOW_C_EAGER_DLPACK_H_
#define GRADFLOW_C_EAGER_DLPACK_H_

#include "tensorflow/c/eager/c_api.h"

namespace tensorflow {

// The name of capsules in Python.
const char* const kDlTensorCapsuleName = "dltensor";

// Returns the device of a handle: the CPU. It belongs to the library.
TF_CAPI_EXPORT extern void* TFE_GetDLDevice(TFE_TensorHandle* h, TF_Status* status);

// Returns a DLManagedTensor that shares the elements and keeps them alive. The receiver calls its
// deleter.
TF_CAPI_EXPORT extern void* TFE_HandleToDLPack(TFE_TensorHandle* h, TF_Status* status);

// Returns a handle that shares the elements and calls the deleter of `dlm`. Returns
// INVALID_ARGUMENT, and leaves `dlm` to the caller, if the device is not the CPU, the type has no
// counterpart, or the elements are not contiguous in row-major order.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_HandleFromDLPack(void* dlm, TF_Status* status,
                                                             TFE_Context* ctx);

// Calls the deleter of a DLManagedTensor. Null has no effect.
TF_CAPI_EXPORT extern void TFE_CallDLManagedTensorDeleter(void* dlm_ptr);

}  // namespace tensorflow

#endif  // GRADFLOW_C_EAGER_DLPACK_H_
