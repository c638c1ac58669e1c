// TF_Buffer: bytes, most often a serialized message of Protocol Buffers.
#ifndef GRADFLOW_C_TF_BUFFER_H_
#define GRADFLOW_C_TF_BUFFER_H_

#include <stddef.h>

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

// A block of bytes. TF_DeleteBuffer() calls `data_deallocator(data, length)` unless it is null.
typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;

// Returns a buffer with a copy of the bytes.
TF_CAPI_EXPORT TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len);

// Returns an empty buffer, for a function that fills it.
TF_CAPI_EXPORT TF_Buffer* TF_NewBuffer(void);

// Frees the buffer and its bytes. Null has no effect.
TF_CAPI_EXPORT void TF_DeleteBuffer(TF_Buffer*);

// Returns the fields of the buffer. The buffer still owns the bytes.
TF_CAPI_EXPORT TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_TF_BUFFER_H_
