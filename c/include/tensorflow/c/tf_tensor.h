// TF_Tensor: an array of elements of one type, in row-major order.
//
// Numbers share their memory with gradflow's tensors: feeding and fetching does not copy. The
// elements of a TF_STRING tensor are TF_TStrings (tf_tstring.h); feeding and fetching copies them.
#ifndef GRADFLOW_C_TF_TENSOR_H_
#define GRADFLOW_C_TF_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where TF_AllocateTemp() allocates. All memory is host memory.
typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  TF_Bool on_host;
} TF_AllocatorAttributes;
#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

// A tensor.
typedef struct TF_Tensor TF_Tensor;

// Returns a tensor over memory of the caller. Calls `deallocator(data, len, deallocator_arg)` when
// nothing uses the memory any more; a null deallocator leaves the memory alone. Returns null, and
// deallocates the memory, if the type or shape is not valid or `len` is too small. Memory that is
// not aligned for the type is copied, and deallocated at once.
TF_CAPI_EXPORT TF_Tensor* TF_NewTensor(TF_DataType, const int64_t* dims, int num_dims, void* data,
                                       size_t len,
                                       void (*deallocator)(void* data, size_t len, void* arg),
                                       void* deallocator_arg);

// Returns the alignment of allocated tensors.
TF_CAPI_EXPORT size_t TF_TensorDefaultAlignment(void);

// Returns a tensor with uninitialized elements; strings are empty. Returns null if the type or
// shape is not valid, `len` is too small, or memory runs out.
TF_CAPI_EXPORT TF_Tensor* TF_AllocateTensor(TF_DataType, const int64_t* dims, int num_dims,
                                            size_t len);

// Returns `tensor` if the library allocated its memory and nothing else uses the memory, otherwise
// null.
TF_CAPI_EXPORT TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor);

// Frees the tensor. Null has no effect.
TF_CAPI_EXPORT void TF_DeleteTensor(TF_Tensor*);

// Return the type, and the rank or a dimension.
TF_CAPI_EXPORT TF_DataType TF_TensorType(const TF_Tensor*);

// Changes the shape. Has no effect if the number of elements differs.
TF_CAPI_EXPORT void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims);
TF_CAPI_EXPORT int TF_NumDims(const TF_Tensor*);
TF_CAPI_EXPORT int64_t TF_Dim(const TF_Tensor* tensor, int dim_index);

// Returns the bytes of the elements: sizeof(TF_TString) for each string.
TF_CAPI_EXPORT size_t TF_TensorByteSize(const TF_Tensor*);

// Returns the elements; may be null if there are none. Resources and variants have no elements that
// a caller may read.
TF_CAPI_EXPORT void* TF_TensorData(const TF_Tensor*);

// Returns the number of elements.
TF_CAPI_EXPORT int64_t TF_TensorElementCount(const TF_Tensor* tensor);

// Makes `to` share the bytes of `from` with another type and shape. Returns INVALID_ARGUMENT if the
// sizes in bytes differ.
TF_CAPI_EXPORT void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                                         const int64_t* new_dims, int num_new_dims,
                                         TF_Status* status);

// Returns true if the elements have the default alignment.
TF_CAPI_EXPORT bool TF_TensorIsAligned(const TF_Tensor*);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_TF_TENSOR_H_
