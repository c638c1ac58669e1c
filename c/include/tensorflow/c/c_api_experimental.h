// Functions that TensorFlow may change. Only those that language bindings and tests use are here.
#ifndef GRADFLOW_C_C_API_EXPERIMENTAL_H_
#define GRADFLOW_C_C_API_EXPERIMENTAL_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Has no effect: gradflow has no just-in-time compiler.
TF_CAPI_EXPORT void TF_EnableXLACompilation(TF_SessionOptions* options, unsigned char enable);

// Returns a serialized ConfigProto or RunOptions. The flags of the config have no effect.
TF_CAPI_EXPORT TF_Buffer* TF_CreateConfig(unsigned char enable_xla_compilation,
                                          unsigned char gpu_memory_allow_growth,
                                          unsigned int num_cpu_devices);
TF_CAPI_EXPORT TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace);

// Return the GraphDef or FunctionDef as text, which free() frees, and its length.
TF_CAPI_EXPORT const char* TF_GraphDebugString(TF_Graph* graph, size_t* len);
TF_CAPI_EXPORT char* TF_FunctionDebugString(TF_Function* func, size_t* len);

// Sets the status to INTERNAL.
TF_CAPI_EXPORT void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg);

// Reads the tensors of a checkpoint, of either format.
typedef struct TF_CheckpointReader TF_CheckpointReader;

// Opens a checkpoint by the prefix of its files.
TF_CAPI_EXPORT TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteCheckpointReader(TF_CheckpointReader* reader);

// Return the names, types and shapes of the tensors. Names are sorted.
TF_CAPI_EXPORT int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name);
TF_CAPI_EXPORT const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index);
TF_CAPI_EXPORT int TF_CheckpointReaderSize(TF_CheckpointReader* reader);
TF_CAPI_EXPORT TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader,
                                                                  const char* name);
TF_CAPI_EXPORT void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader,
                                                        const char* name, int64_t* dims,
                                                        int num_dims, TF_Status* status);
TF_CAPI_EXPORT int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader,
                                                         const char* name);

// Reads a tensor.
TF_CAPI_EXPORT TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader,
                                                       const char* name, TF_Status* status);

// Returns the attribute with the length of an input that is a list, or null.
TF_CAPI_EXPORT const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index,
                                                          TF_Status* status);

// Returns 1 if the op is stateful.
TF_CAPI_EXPORT int TF_OpIsStateful(const char* op_type, TF_Status* status);

// Has no effect.
TF_CAPI_EXPORT void TF_InitMain(const char* usage, int* argc, char*** argv);

// Returns a handle of a scalar with these bytes.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type, void* data,
                                                               size_t len, TF_Status* status);

// Shapes and types. A `num_dims` of -1 is an unknown rank, a dimension of -1 is unknown.
typedef struct TF_ShapeAndType {
  int num_dims;
  int64_t* dims;
  TF_DataType dtype;
} TF_ShapeAndType;
typedef struct TF_ShapeAndTypeList {
  int num_items;
  TF_ShapeAndType* items;
} TF_ShapeAndTypeList;

// Make, change and free lists of shapes and types.
TF_CAPI_EXPORT TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index,
                                                const int64_t* dims, int num_dims);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list, int index);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index,
                                                TF_DataType dtype);
TF_CAPI_EXPORT void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list);
TF_CAPI_EXPORT void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array,
                                                   int num_items);

// Runs the shape function of an op. `input_tensors` may be null, and so may its elements; the
// arrays of resources and `input_tensor_as_shapes` are ignored, and the arrays of resources of
// outputs are set to null.
TF_CAPI_EXPORT void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes,
                                    TF_Tensor** input_tensors,
                                    TF_ShapeAndTypeList* input_tensor_as_shapes,
                                    TF_ShapeAndTypeList** input_resource_shapes_and_types,
                                    TF_ShapeAndTypeList** output_shapes,
                                    TF_ShapeAndTypeList*** output_resource_shapes_and_types,
                                    TF_Status* status);

// If disabled, drops colocations with nodes that are not in the GraphDef.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetValidateColocationConstraints(
    TF_ImportGraphDefOptions* opts, unsigned char enable);

// Returns UNIMPLEMENTED: gradflow has no plugins for devices.
TF_CAPI_EXPORT TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename,
                                                         TF_Status* status);
TF_CAPI_EXPORT void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle);

// Removes a function. Returns FAILED_PRECONDITION if an operation calls it.
TF_CAPI_EXPORT void TF_GraphRemoveFunction(TF_Graph* g, const char* func_name, TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_C_API_EXPERIMENTAL_H_
