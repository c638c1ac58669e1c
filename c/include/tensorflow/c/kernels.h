// Kernels in C.
//
// static void Compute(void* kernel, TF_OpKernelContext* ctx) {
// TF_Status* status = TF_NewStatus();
// TF_Tensor* x;
// TF_GetInput(ctx, 0, &x, status);
// ...
// }
// TF_KernelBuilder* builder = TF_NewKernelBuilder("ZeroOut", "CPU", NULL, &Compute, NULL);
// TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
// TF_RegisterKernelBuilder("ZeroOut", builder, status);
//
// Several threads may call the compute function of a kernel at once. Tensors that functions return
// belong to the caller, who deletes them.
#ifndef GRADFLOW_C_KERNELS_H_
#define GRADFLOW_C_KERNELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

// A stream of a GPU. gradflow makes no streams.
typedef struct SP_Stream_st* SP_Stream;

#ifdef __cplusplus
extern "C" {
#endif

// A kernel that is being registered; a kernel that is being made; one run of a kernel; the end of a
// run.
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;

// Ends the run of an asynchronous kernel. Must be called once.
TF_CAPI_EXPORT void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback*);

// A library of kernels defines this function. TF_LoadLibrary() calls it.
TF_CAPI_EXPORT void TF_InitKernel(void);

// Start the registration of a kernel for a device: "CPU". `create_func` makes the object that is
// passed to `compute_func` and `delete_func`; `create_func` and `delete_func` may be null.
TF_CAPI_EXPORT TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*), void (*delete_func)(void*));
TF_CAPI_EXPORT TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*));

// Restricts the kernel to a type of an attribute. Several types of one attribute are alternatives.
TF_CAPI_EXPORT void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder,
                                                    const char* attr_name, TF_DataType type,
                                                    TF_Status* status);

// Names an argument for lists of kernels. All memory is host memory.
TF_CAPI_EXPORT void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder,
                                                const char* arg_name);

// Set the priority, and the attribute _kernel that nodes must have.
TF_CAPI_EXPORT void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder,
                                              int32_t priority_number);
TF_CAPI_EXPORT void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label);

// Register the kernel. The library owns the builder from then on, also after an error.
TF_CAPI_EXPORT void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* builder,
                                             TF_Status* status);
TF_CAPI_EXPORT void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def,
                                                          const char* name,
                                                          TF_KernelBuilder* builder,
                                                          TF_Status* status);

// Frees a builder. Builders that were registered, and null, have no effect.
TF_CAPI_EXPORT void TF_DeleteKernelBuilder(TF_KernelBuilder* builder);

// Returns null and UNIMPLEMENTED: the CPU has no streams.
TF_CAPI_EXPORT SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status);

// Return the numbers of inputs and outputs; each element of a list counts.
TF_CAPI_EXPORT int TF_NumInputs(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_NumOutputs(TF_OpKernelContext* ctx);

// Stores input `i`, which shares its elements unless they are strings.
TF_CAPI_EXPORT void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor,
                                TF_Status* status);

// The range [start, stop) of the inputs of an argument.
typedef struct {
  size_t struct_size;
  void* priv;
  int start;
  int stop;
  TF_Status* status;
} TF_InputRange_Args;
static const size_t TF_InputRange_Args_STRUCT_SIZE = TF_OFFSET_OF_END(TF_InputRange_Args, status);

// Sets `args->start`, `args->stop` and `args->status`.
TF_CAPI_EXPORT void TF_InputRange(TF_OpKernelContext* ctx, const char* name,
                                  TF_InputRange_Args* args);

// Returns the type of an input.
TF_CAPI_EXPORT TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index);

// Sets output `i`.
TF_CAPI_EXPORT void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor,
                                 TF_Status* status);

// Returns output `i`, which must be set.
TF_CAPI_EXPORT TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status);

// Fail the making of the kernel, or its run.
TF_CAPI_EXPORT void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx,
                                                    TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status);

// Returns the type of an output.
TF_CAPI_EXPORT TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i);

// Return true: all memory is host memory.
TF_CAPI_EXPORT bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status);
TF_CAPI_EXPORT bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status);

// Return the number of the run within its session.
TF_CAPI_EXPORT int64_t TF_StepId(TF_OpKernelContext* ctx);

// Returns the serialized NodeDef.
TF_CAPI_EXPORT TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx,
                                                             TF_Status* status);
TF_CAPI_EXPORT uint64_t TF_GetFrameId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int64_t TF_GetIterId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int64_t TF_GetStepId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_GetDeviceId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_GetGraphDefVersion(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx, size_t index);

// Stores the length of a list, or -1, and the number of characters of strings or of dimensions of
// shapes, or -1.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx,
                                                        const char* attr_name, int32_t* list_size,
                                                        int32_t* total_size, TF_Status* status);

// Read attributes of the node. Lists are cut at `max_vals` elements.
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* ctx,
                                                        const char* attr_name, TF_DataType* val,
                                                        TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx,
                                                         const char* attr_name, int32_t* val,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* ctx,
                                                         const char* attr_name, int64_t* val,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx,
                                                         const char* attr_name, float* val,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* ctx,
                                                        const char* attr_name, TF_Bool* val,
                                                        TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx,
                                                          const char* attr_name, char* val,
                                                          size_t max_length, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx,
                                                          const char* attr_name, TF_Tensor** val,
                                                          TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* ctx,
                                                            const char* attr_name,
                                                            TF_DataType* vals, int max_vals,
                                                            TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx,
                                                             const char* attr_name, int32_t* vals,
                                                             int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* ctx,
                                                             const char* attr_name, int64_t* vals,
                                                             int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* ctx,
                                                             const char* attr_name, float* vals,
                                                             int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* ctx,
                                                            const char* attr_name, TF_Bool* vals,
                                                            int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* ctx,
                                                              const char* attr_name, char** values,
                                                              size_t* lengths, int max_values,
                                                              void* storage, size_t storage_size,
                                                              TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx,
                                                              const char* attr_name,
                                                              TF_Tensor** vals, int max_values,
                                                              TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx,
                                                                  const char* attr_name,
                                                                  TF_Status* status);

// Returns true if the node has the attribute.
TF_CAPI_EXPORT bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx,
                                                    const char* attr_name, TF_Status* status);

// Returns the name of the node.
TF_CAPI_EXPORT TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx);

// Allocates output `index` and returns it, sharing its elements. `len` is the size in bytes.
TF_CAPI_EXPORT TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index,
                                            TF_DataType dtype, const int64_t* dims, int num_dims,
                                            size_t len, TF_Status* status);

// Like TF_AllocateOutput(), but reuses the memory of one of the candidate inputs if nothing else
// reads it. Stores its index, or -1, in `forwarded_input` unless that is null.
TF_CAPI_EXPORT TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidate_input_indices,
    int num_candidate_input_indices, int output_index, const int64_t* output_dims,
    int output_num_dims, int* forwarded_input, TF_Status* status);

// Allocates memory that lives as long as the tensor.
TF_CAPI_EXPORT TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype,
                                          const int64_t* dims, int num_dims,
                                          TF_AllocatorAttributes* alloc_attrs, TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_KERNELS_H_
