// Functions of eager execution that TensorFlow may change. Only those that concern one process are
// here.
#ifndef GRADFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
#define GRADFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes an op anew, without inputs and attributes.
TF_CAPI_EXPORT void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name,
                                const char* raw_device_name, TF_Status* status);

// Has no effect.
TF_CAPI_EXPORT void TFE_ContextOptionsSetTfrt(TFE_ContextOptions*, bool use_tfrt);

// Returns a number that is unique in the process.
TF_CAPI_EXPORT uint64_t TFE_GetContextId(TFE_Context* ctx);

// Cancels the ops that use it, and calls callbacks.
typedef struct TFE_CancellationManager TFE_CancellationManager;
typedef int64_t TFE_CancellationToken;
typedef struct TFE_CancelCallback {
  void (*callback)(void* context);
  void* context;
} TFE_CancelCallback;

// Returns a manager that is not cancelled. It outlives the ops that use it.
TF_CAPI_EXPORT TFE_CancellationManager* TFE_NewCancellationManager(void);

// Return whether it is cancelled, and whether its callbacks are being called.
TF_CAPI_EXPORT bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager*);
TF_CAPI_EXPORT bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager*);

// Cancels. Ops that run and ops that are executed later end with CANCELLED.
TF_CAPI_EXPORT void TFE_CancellationManagerStartCancel(TFE_CancellationManager*);

// Returns a token for a callback.
TF_CAPI_EXPORT TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager*);

// Registers a callback. Returns false if the manager is cancelled.
TF_CAPI_EXPORT bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager*,
                                                            TFE_CancellationToken token,
                                                            const TFE_CancelCallback* c_callback,
                                                            const char* callback_name);

// Return false if the callback has been called, is being called or is not registered. Deregister
// waits while another thread calls callbacks, so that the program may then free their context;
// TryDeregister does not wait.
TF_CAPI_EXPORT bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager*,
                                                              TFE_CancellationToken token);
TF_CAPI_EXPORT bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager*,
                                                                 TFE_CancellationToken token);

// Frees the manager. Null has no effect.
TF_CAPI_EXPORT void TFE_DeleteCancellationManager(TFE_CancellationManager*);

// Sets the manager of an op.
TF_CAPI_EXPORT void TFE_OpSetCancellationManager(TFE_Op* op,
                                                 TFE_CancellationManager* cancellation_manager,
                                                 TF_Status* status);

// Executes the ops of a thread. Ops are done when TFE_Execute() returns, so an executor has nothing
// to wait for.
typedef struct TFE_Executor TFE_Executor;
TF_CAPI_EXPORT TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                                             int in_flight_nodes_limit);
TF_CAPI_EXPORT void TFE_DeleteExecutor(TFE_Executor*);
TF_CAPI_EXPORT bool TFE_ExecutorIsAsync(TFE_Executor*);
TF_CAPI_EXPORT void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor*, TF_Status* status);
TF_CAPI_EXPORT void TFE_ExecutorClearError(TFE_Executor*);

// Set and return the executor of this thread. The result must be deleted.
TF_CAPI_EXPORT void TFE_ContextSetExecutorForThread(TFE_Context*, TFE_Executor*);
TF_CAPI_EXPORT TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context*);

// Return UNIMPLEMENTED: there are no clusters.
TF_CAPI_EXPORT void TFE_ContextUpdateServerDef(TFE_Context* ctx, int keep_alive_secs,
                                               const void* proto, size_t proto_len,
                                               TF_Status* status);
TF_CAPI_EXPORT void TFE_ContextSetServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs,
                                                       const void* proto, size_t proto_len,
                                                       int64_t init_timeout_in_ms,
                                                       TF_Status* status,
                                                       bool clear_existing_contexts);

// Has no effect.
TF_CAPI_EXPORT void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status);

// Return the elements and their size in bytes. The elements of strings, resources and variants have
// no layout in C: DevicePointer() returns null and INVALID_ARGUMENT for them.
TF_CAPI_EXPORT void* TFE_TensorHandleDevicePointer(TFE_TensorHandle*, TF_Status*);
TF_CAPI_EXPORT size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle*, TF_Status*);

// Returns a handle over memory of the caller. Calls `deallocator` when nothing uses the memory any
// more.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context* ctx, const char* device_name, TF_DataType, const int64_t* dims, int num_dims,
    void* data, size_t len, void (*deallocator)(void* data, size_t len, void* arg),
    void* deallocator_arg, TF_Status* status);

// The attributes of an op; valid as long as the op.
typedef struct TFE_OpAttrs TFE_OpAttrs;
TF_CAPI_EXPORT const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op);
TF_CAPI_EXPORT void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs);

// Stores a serialized NameAttrList.
TF_CAPI_EXPORT void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf,
                                         TF_Status* status);

// Sets an attribute to a serialized AttrValue.
TF_CAPI_EXPORT void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name,
                                            const void* proto, size_t proto_len, TF_Status* status);

// Return a function of the context.
TF_CAPI_EXPORT void TFE_ContextGetFunctionDef(TFE_Context* ctx, const char* function_name,
                                              TF_Buffer* buf, TF_Status* status);
TF_CAPI_EXPORT TF_Function* TFE_ContextGetFunction(TFE_Context* ctx, const char* name,
                                                   TF_Status* status);

// Returns a tensor with uninitialized elements.
TF_CAPI_EXPORT TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype,
                                                 const int64_t* dims, int num_dims,
                                                 TF_Status* status);

// Like TFE_NewTensorHandle().
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx, TF_Tensor* t,
                                                               TF_Status* status);

// Have no effect.
TF_CAPI_EXPORT void TFE_ContextSetSoftDevicePlacement(TFE_Context* ctx, unsigned char enable,
                                                      TF_Status* status);
TF_CAPI_EXPORT void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable,
                                                     TF_Status* status);

// Return "CPU" and 0.
TF_CAPI_EXPORT const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status);

// Sets the status to OK: a handle always has a value.
TF_CAPI_EXPORT void TFE_TensorHandleGetStatus(TFE_TensorHandle* h, TF_Status* status);

// Stores the names of ops that have been executed, separated by commas.
TF_CAPI_EXPORT void TFE_GetExecutedOpNames(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
