// The C API of TensorFlow, on gradflow.
//
// Programs and language bindings for libtensorflow use these functions unchanged (docs/c_api.md).
//
// Functions with a TF_Status* store OK or an error in it; no other argument is set on error unless
// the function says so. The caller owns the results of functions named TF_New..., TF_Load... or
// TF_Import..., and frees a result by the TF_Delete... function of its type. Strings that functions
// return belong to the object that they describe. Pointers must not be null unless a comment allows
// it.
//
// Thread safety: functions on one object may be called from several threads, except that an object
// under construction (an operation description, options) belongs to one thread at a time. Deleting
// an object ends its use on all threads.
#ifndef GRADFLOW_C_C_API_H_
#define GRADFLOW_C_C_API_H_
// Programs test this name.
#define TENSORFLOW_C_C_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_attrtype.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the version of TensorFlow whose interface this library has.
TF_CAPI_EXPORT const char* TF_Version(void);

// Parses a TensorProto into `to`, which loses its elements.
TF_CAPI_EXPORT void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status);

// Characters that belong to another object.
typedef struct TF_StringView {
  const char* data;
  size_t len;
} TF_StringView;

// Options of sessions: a ConfigProto, and a target that must be empty or "local".
typedef struct TF_SessionOptions TF_SessionOptions;
TF_CAPI_EXPORT TF_SessionOptions* TF_NewSessionOptions(void);
TF_CAPI_EXPORT void TF_SetTarget(TF_SessionOptions* options, const char* target);

// Parses a ConfigProto. gradflow/runtime/session/options.h lists the fields with an effect.
TF_CAPI_EXPORT void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len,
                                 TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteSessionOptions(TF_SessionOptions*);

// A graph. It lives until TF_DeleteGraph() has been called and all sessions of the graph are
// deleted.
typedef struct TF_Graph TF_Graph;
TF_CAPI_EXPORT TF_Graph* TF_NewGraph(void);
TF_CAPI_EXPORT void TF_DeleteGraph(TF_Graph*);

// An operation under construction, and an operation of a graph. Operations live as long as their
// graph.
typedef struct TF_OperationDescription TF_OperationDescription;
typedef struct TF_Operation TF_Operation;

// An input of an operation.
typedef struct TF_Input {
  TF_Operation* oper;
  int index;
} TF_Input;

// An output of an operation.
typedef struct TF_Output {
  TF_Operation* oper;
  int index;
} TF_Output;

// A function that nodes of a graph can call. TF_FunctionOptions has no fields; pass null.
typedef struct TF_Function TF_Function;
typedef struct TF_FunctionOptions TF_FunctionOptions;

// Merges a shape into the shape of an output; -1 is an unknown dimension, and a rank of -1 an
// unknown shape. Returns INVALID_ARGUMENT if the shapes contradict each other. Operations that are
// added later see the merged shape.
TF_CAPI_EXPORT void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims,
                                           const int num_dims, TF_Status* status);

// Return the rank of an output, or -1 if it is unknown, and its dimensions.
TF_CAPI_EXPORT int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims,
                                           int num_dims, TF_Status* status);

// Start an operation. It is added by TF_FinishOperation(). The function ending in Locked is for
// callers that serialize their changes to the graph, and is the same.
TF_CAPI_EXPORT TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type,
                                                              const char* oper_name);
TF_CAPI_EXPORT TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type,
                                                        const char* oper_name);

// Sets the requested device, such as "/cpu:0".
TF_CAPI_EXPORT void TF_SetDevice(TF_OperationDescription* desc, const char* device);

// Add the next input, or the next input that is a list, in the order of the op definition.
TF_CAPI_EXPORT void TF_AddInput(TF_OperationDescription* desc, TF_Output input);
TF_CAPI_EXPORT void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs,
                                    int num_inputs);

// Makes the operation run after `input`.
TF_CAPI_EXPORT void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input);

// Requests the device of `op`.
TF_CAPI_EXPORT void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op);

// Set an attribute; a later value replaces an earlier one. Arrays are copied. In shapes, -1 is an
// unknown dimension, and a rank of -1 an unknown shape.
TF_CAPI_EXPORT void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name,
                                     const void* value, size_t length);
TF_CAPI_EXPORT void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                                         const void* const* values, const size_t* lengths,
                                         int num_values);
TF_CAPI_EXPORT void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name,
                                  int64_t value);
TF_CAPI_EXPORT void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name,
                                      const int64_t* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name,
                                    float value);
TF_CAPI_EXPORT void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name,
                                        const float* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name,
                                   unsigned char value);
TF_CAPI_EXPORT void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name,
                                       const unsigned char* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name,
                                   TF_DataType value);
TF_CAPI_EXPORT void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name,
                                       const TF_DataType* values, int num_values);

// Names an attribute of the function that contains the operation, whose value is taken.
TF_CAPI_EXPORT void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                                          const char* placeholder);

// Names a function of the graph.
TF_CAPI_EXPORT void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name,
                                       const char* value, size_t length);
TF_CAPI_EXPORT void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name,
                                    const int64_t* dims, int num_dims);
TF_CAPI_EXPORT void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                                        const int64_t* const* dims, const int* num_dims,
                                        int num_shapes);

// Set an attribute from serialized TensorShapeProtos.
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name,
                                               const void* proto, size_t proto_len,
                                               TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc,
                                                   const char* attr_name, const void* const* protos,
                                                   const size_t* proto_lens, int num_shapes,
                                                   TF_Status* status);

// Set an attribute to copies of tensors.
TF_CAPI_EXPORT void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name,
                                     TF_Tensor* value, TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name,
                                         TF_Tensor* const* values, int num_values,
                                         TF_Status* status);

// Sets an attribute from a serialized AttrValue.
TF_CAPI_EXPORT void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name,
                                         const void* proto, size_t proto_len, TF_Status* status);

// Add the operation to the graph and delete `desc`. Return null on error; the graph is then
// unchanged.
TF_CAPI_EXPORT TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc,
                                                      TF_Status* status);
TF_CAPI_EXPORT TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status);

// Return properties of an operation.
TF_CAPI_EXPORT const char* TF_OperationName(TF_Operation* oper);
TF_CAPI_EXPORT const char* TF_OperationOpType(TF_Operation* oper);
TF_CAPI_EXPORT const char* TF_OperationDevice(TF_Operation* oper);

// Return the number of outputs, and the type of an output. Each element of a list counts.
TF_CAPI_EXPORT int TF_OperationNumOutputs(TF_Operation* oper);
TF_CAPI_EXPORT TF_DataType TF_OperationOutputType(TF_Output oper_out);

// Returns the number of outputs that the output `arg_name` of the op definition has.
TF_CAPI_EXPORT int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name,
                                                TF_Status* status);

// Return the number of inputs, and the type of an input. Control inputs do not count.
TF_CAPI_EXPORT int TF_OperationNumInputs(TF_Operation* oper);
TF_CAPI_EXPORT TF_DataType TF_OperationInputType(TF_Input oper_in);

// Returns the number of inputs that the input `arg_name` of the op definition has.
TF_CAPI_EXPORT int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name,
                                               TF_Status* status);

// Returns the source of an input.
TF_CAPI_EXPORT TF_Output TF_OperationInput(TF_Input oper_in);

// Stores the sources of the first `max_inputs` inputs.
TF_CAPI_EXPORT void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs);

// Return the number of inputs that read an output, and store up to `max_consumers` of these inputs.
TF_CAPI_EXPORT int TF_OperationOutputNumConsumers(TF_Output oper_out);
TF_CAPI_EXPORT int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers,
                                               int max_consumers);

// Return the number of control inputs or outputs, and store up to a number of them.
TF_CAPI_EXPORT int TF_OperationNumControlInputs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs,
                                                int max_control_inputs);
TF_CAPI_EXPORT int TF_OperationNumControlOutputs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs,
                                                 int max_control_outputs);

// The kind and size of an attribute. `list_size` is -1 unless the attribute is a list. `total_size`
// is the number of characters of strings or of dimensions of shapes, and -1 for other kinds and for
// an unknown shape.
typedef struct TF_AttrMetadata {
  unsigned char is_list;
  int64_t list_size;
  TF_AttrType type;
  int64_t total_size;
} TF_AttrMetadata;

// Returns INVALID_ARGUMENT if the operation has no attribute of this name.
TF_CAPI_EXPORT TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper,
                                                           const char* attr_name,
                                                           TF_Status* status);

// Read an attribute. Lists are cut at the given maximum number of elements.
// TF_OperationGetAttrMetadata() gives the sizes that the arrays need. Return INVALID_ARGUMENT if
// the attribute has another kind.
TF_CAPI_EXPORT void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name,
                                              void* value, size_t max_length, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name,
                                                  void** values, size_t* lengths, int max_values,
                                                  void* storage, size_t storage_size,
                                                  TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrInt(TF_Operation* oper, const char* attr_name,
                                           int64_t* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrIntList(TF_Operation* oper, const char* attr_name,
                                               int64_t* values, int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloat(TF_Operation* oper, const char* attr_name,
                                             float* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* attr_name,
                                                 float* values, int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBool(TF_Operation* oper, const char* attr_name,
                                            unsigned char* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* attr_name,
                                                unsigned char* values, int max_values,
                                                TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrType(TF_Operation* oper, const char* attr_name,
                                            TF_DataType* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* attr_name,
                                                TF_DataType* values, int max_values,
                                                TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name,
                                             int64_t* value, int num_dims, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name,
                                                 int64_t** dims, int* num_dims, int num_shapes,
                                                 int64_t* storage, int storage_size,
                                                 TF_Status* status);

// Store shapes as serialized TensorShapeProtos. The second function makes the buffers.
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* attr_name,
                                                        TF_Buffer* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper,
                                                            const char* attr_name,
                                                            TF_Buffer** values, int max_values,
                                                            TF_Status* status);

// Store tensors, which the caller deletes.
TF_CAPI_EXPORT void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name,
                                              TF_Tensor** value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name,
                                                  TF_Tensor** values, int max_values,
                                                  TF_Status* status);

// Stores a serialized AttrValue.
TF_CAPI_EXPORT void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                                  TF_Buffer* output_attr_value, TF_Status* status);

// Return the number of attributes, and the length and name of attribute `i`, without a terminating
// zero. Attributes are sorted by name.
TF_CAPI_EXPORT int TF_OperationGetNumAttrs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetAttrNameLength(TF_Operation* oper, int i);
TF_CAPI_EXPORT void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output,
                                            TF_Status* status);

// Returns null if the graph has no operation of this name.
TF_CAPI_EXPORT TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name);

// Returns the operations one by one, then null. `*pos` starts at 0.
TF_CAPI_EXPORT TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos);

// Store a serialized GraphDef, OpDef or VersionDef.
TF_CAPI_EXPORT void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def,
                                       TF_Status* status);
TF_CAPI_EXPORT void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def,
                                     TF_Status* status);
TF_CAPI_EXPORT void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def,
                                     TF_Status* status);

// Options of imports.
typedef struct TF_ImportGraphDefOptions TF_ImportGraphDefOptions;
TF_CAPI_EXPORT TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void);
TF_CAPI_EXPORT void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts);

// Names the nodes "prefix/name".
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts,
                                                      const char* prefix);

// Sets the device of nodes that request none.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts,
                                                             const char* device);

// Make the names of nodes, or the prefix, unique by adding "_1" instead of returning an error.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts,
                                                             unsigned char uniquify_names);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts,
                                                              unsigned char uniquify_prefix);

// Replaces output `src_index` of the imported node `src_name` by `dst` as an input of imported
// nodes.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts,
                                                            const char* src_name, int src_index,
                                                            TF_Output dst);

// Replaces the imported node `src_name` by `dst` as a control input.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* opts,
                                                                   const char* src_name,
                                                                   TF_Operation* dst);

// Makes all imported nodes run after `oper`.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts,
                                                                 TF_Operation* oper);

// Request an output or an operation in the results. If an output is mapped, the result is the
// output that it is mapped to.
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts,
                                                            const char* oper_name, int index);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts,
                                                               const char* oper_name);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOperations(
    const TF_ImportGraphDefOptions* opts);

// Results of an import. The arrays belong to the results.
typedef struct TF_ImportGraphDefResults TF_ImportGraphDefResults;
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results,
                                                          int* num_outputs, TF_Output** outputs);
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results,
                                                             int* num_opers, TF_Operation*** opers);

// Stores the input mappings whose source is neither in the GraphDef nor used by it.
TF_CAPI_EXPORT void TF_ImportGraphDefResultsMissingUnusedInputMappings(
    TF_ImportGraphDefResults* results, int* num_missing_unused_input_mappings,
    const char*** src_names, int** src_indexes);
TF_CAPI_EXPORT void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results);

// Add the nodes and functions of a GraphDef. On error the graph is unchanged and null is returned.
// For NoSerialization, `graph_def->data` is not serialized, but points to a GraphDef message of
// this library, which only code inside of the library can make.
TF_CAPI_EXPORT TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status);
TF_CAPI_EXPORT TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status);

// Imports without a results object. Stores the outputs that `options` requests.
TF_CAPI_EXPORT void TF_GraphImportGraphDefWithReturnOutputs(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Output* return_outputs, int num_return_outputs, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                                           const TF_ImportGraphDefOptions* options,
                                           TF_Status* status);

// Adds a function to a graph. `grad` must be null: gradients of functions are made from their
// bodies.
TF_CAPI_EXPORT void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func,
                                         const TF_Function* grad, TF_Status* status);

// Return the number of functions, and store up to `max_func` of them, which the caller deletes.
TF_CAPI_EXPORT int TF_GraphNumFunctions(TF_Graph* g);
TF_CAPI_EXPORT int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func,
                                        TF_Status* status);

// Stores a serialized NodeDef.
TF_CAPI_EXPORT void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def,
                                          TF_Status* status);

// A while loop under construction. The caller adds operations to `cond_graph` and `body_graph`,
// which compute from their inputs, and sets `cond_output`, `body_outputs` and `name`.
typedef struct TF_WhileParams {
  const int ninputs;
  TF_Graph* const cond_graph;
  const TF_Output* const cond_inputs;
  TF_Output cond_output;
  TF_Graph* const body_graph;
  const TF_Output* const body_inputs;
  TF_Output* const body_outputs;
  const char* name;
} TF_WhileParams;

// Starts a loop over `inputs`.
TF_CAPI_EXPORT TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs,
                                          TF_Status* status);

// Adds the loop, stores its `ninputs` outputs and frees `params`.
TF_CAPI_EXPORT void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status,
                                   TF_Output* outputs);

// Frees `params` without adding a loop.
TF_CAPI_EXPORT void TF_AbortWhile(const TF_WhileParams* params);

// Add the gradients of the sum of `y` with respect to each `x`, and store them in `dy`. `dx` holds
// the gradients of `y`; null means ones. The oper of a gradient that does not exist is null. The
// operations are named under `prefix`, which must be new in the graph, or under "gradients",
// "gradients_1", ... if it is null.
TF_CAPI_EXPORT void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx,
                                    TF_Output* dx, TF_Status* status, TF_Output* dy);
TF_CAPI_EXPORT void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny,
                                              TF_Output* x, int nx, TF_Output* dx,
                                              TF_Status* status, TF_Output* dy);

// Make a function from operations of a graph. `num_opers` of -1 takes all operations except the
// inputs. Inputs become arguments, outputs become results; `output_names` may be null.
// `append_hash_to_fn_name` appends a hash of the function to its name. `opts` and `description` may
// be null.
TF_CAPI_EXPORT TF_Function* TF_GraphToFunction(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status);
TF_CAPI_EXPORT TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names, int ncontrol_outputs,
    const TF_Operation* const* control_outputs, const char* const* control_output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status);

// Returns the name.
TF_CAPI_EXPORT const char* TF_FunctionName(TF_Function* func);

// Store, or make a function from, a serialized FunctionDef.
TF_CAPI_EXPORT void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def,
                                             TF_Status* status);
TF_CAPI_EXPORT TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len,
                                                         TF_Status* status);

// Set or read an attribute of the function, as a serialized AttrValue.
TF_CAPI_EXPORT void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name,
                                                 const void* proto, size_t proto_len,
                                                 TF_Status* status);
TF_CAPI_EXPORT void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                                 TF_Buffer* output_attr_value, TF_Status* status);

// Frees the function. Graphs that it was copied to keep it. Null has no effect.
TF_CAPI_EXPORT void TF_DeleteFunction(TF_Function* func);

// Returns 1 and stores the value of `output` if it can be computed from constants, otherwise
// returns 0.
TF_CAPI_EXPORT unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output,
                                                    TF_Tensor** result, TF_Status* status);

// A session runs operations of a graph. It sees operations that are added later. Null options are
// defaults.
typedef struct TF_Session TF_Session;
TF_CAPI_EXPORT TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts,
                                         TF_Status* status);

// Loads the graph with these tags from a SavedModel into the empty `graph`, restores its variables,
// and runs its initializers. `run_options` (RunOptions) and `meta_graph_def` (filled) may be null.
TF_CAPI_EXPORT TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options,
                                                        const TF_Buffer* run_options,
                                                        const char* export_dir,
                                                        const char* const* tags, int tags_len,
                                                        TF_Graph* graph, TF_Buffer* meta_graph_def,
                                                        TF_Status* status);

// Ends the runs of the session.
TF_CAPI_EXPORT void TF_CloseSession(TF_Session*, TF_Status* status);

// Frees the session, and the graph if TF_DeleteGraph() has been called. Null has no effect.
TF_CAPI_EXPORT void TF_DeleteSession(TF_Session*, TF_Status* status);

// Feeds `inputs`, runs `target_opers` and the operations that `outputs` need, and stores the
// outputs, which the caller deletes. `run_options` (RunOptions) and `run_metadata` (filled) may be
// null. On error, `output_values` are null.
TF_CAPI_EXPORT void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options,
                                  const TF_Output* inputs, TF_Tensor* const* input_values,
                                  int ninputs, const TF_Output* outputs, TF_Tensor** output_values,
                                  int noutputs, const TF_Operation* const* target_opers,
                                  int ntargets, TF_Buffer* run_metadata, TF_Status*);

// Partial runs: one run in several calls. The setup names all feeds, fetches and targets. Each call
// feeds some inputs and fetches outputs that depend on no other inputs than those fed so far. A
// value is computed once.
TF_CAPI_EXPORT void TF_SessionPRunSetup(TF_Session*, const TF_Output* inputs, int ninputs,
                                        const TF_Output* outputs, int noutputs,
                                        const TF_Operation* const* target_opers, int ntargets,
                                        const char** handle, TF_Status*);
TF_CAPI_EXPORT void TF_SessionPRun(TF_Session*, const char* handle, const TF_Output* inputs,
                                   TF_Tensor* const* input_values, int ninputs,
                                   const TF_Output* outputs, TF_Tensor** output_values,
                                   int noutputs, const TF_Operation* const* target_opers,
                                   int ntargets, TF_Status*);
TF_CAPI_EXPORT void TF_DeletePRunHandle(const char* handle);

// The session of the first versions of the API, which owns its graph and works with names.
typedef struct TF_DeprecatedSession TF_DeprecatedSession;
TF_CAPI_EXPORT TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions*,
                                                             TF_Status* status);
TF_CAPI_EXPORT void TF_CloseDeprecatedSession(TF_DeprecatedSession*, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeprecatedSession(TF_DeprecatedSession*, TF_Status* status);

// Clears containers of a remote target. There are none: has no effect.
TF_CAPI_EXPORT void TF_Reset(const TF_SessionOptions* opt, const char** containers, int ncontainers,
                             TF_Status* status);

// Adds the nodes of a serialized GraphDef.
TF_CAPI_EXPORT void TF_ExtendGraph(TF_DeprecatedSession*, const void* proto, size_t proto_len,
                                   TF_Status*);
TF_CAPI_EXPORT void TF_Run(TF_DeprecatedSession*, const TF_Buffer* run_options,
                           const char** input_names, TF_Tensor** inputs, int ninputs,
                           const char** output_names, TF_Tensor** outputs, int noutputs,
                           const char** target_oper_names, int ntargets, TF_Buffer* run_metadata,
                           TF_Status*);
TF_CAPI_EXPORT void TF_PRunSetup(TF_DeprecatedSession*, const char** input_names, int ninputs,
                                 const char** output_names, int noutputs,
                                 const char** target_oper_names, int ntargets, const char** handle,
                                 TF_Status*);
TF_CAPI_EXPORT void TF_PRun(TF_DeprecatedSession*, const char* handle, const char** input_names,
                            TF_Tensor** inputs, int ninputs, const char** output_names,
                            TF_Tensor** outputs, int noutputs, const char** target_oper_names,
                            int ntargets, TF_Status*);

// A list of devices: the CPU.
typedef struct TF_DeviceList TF_DeviceList;
TF_CAPI_EXPORT TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status);
TF_CAPI_EXPORT TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session,
                                                              TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeviceList(TF_DeviceList* list);
TF_CAPI_EXPORT int TF_DeviceListCount(const TF_DeviceList* list);
TF_CAPI_EXPORT const char* TF_DeviceListName(const TF_DeviceList* list, int index,
                                             TF_Status* status);
TF_CAPI_EXPORT const char* TF_DeviceListType(const TF_DeviceList* list, int index,
                                             TF_Status* status);
TF_CAPI_EXPORT int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index,
                                                TF_Status* status);
TF_CAPI_EXPORT uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index,
                                                 TF_Status* status);

// A plugin of gradflow (gradflow/io/plugin.h), with its ops. A library for TensorFlow's C++ API
// cannot be loaded.
typedef struct TF_Library TF_Library;
TF_CAPI_EXPORT TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status);

// Returns a serialized OpList of the ops that the library has registered. It belongs to the
// library.
TF_CAPI_EXPORT TF_Buffer TF_GetOpList(TF_Library* lib_handle);

// Frees the handle. The ops stay registered.
TF_CAPI_EXPORT void TF_DeleteLibraryHandle(TF_Library* lib_handle);

// Returns a serialized OpList of all ops.
TF_CAPI_EXPORT TF_Buffer* TF_GetAllOpList(void);

// Documentation of ops, as ApiDef messages.
typedef struct TF_ApiDefMap TF_ApiDefMap;

// Makes a map from a serialized OpList.
TF_CAPI_EXPORT TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteApiDefMap(TF_ApiDefMap* apimap);

// Changes the map by ApiDefs in text format: `op { graph_op_name: "X" ... }`.
TF_CAPI_EXPORT void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len,
                                    TF_Status* status);

// Returns the serialized ApiDef of an op, or null and INVALID_ARGUMENT if the map lacks it.
TF_CAPI_EXPORT TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name,
                                          size_t name_len, TF_Status* status);

// Return a serialized KernelList.
TF_CAPI_EXPORT TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status);

// Changes the source of an input.
TF_CAPI_EXPORT void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst,
                                  TF_Status* status);

// A server of a cluster. There are no clusters: making a server returns UNIMPLEMENTED.
typedef struct TF_Server TF_Server;
TF_CAPI_EXPORT TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_ServerStart(TF_Server* server, TF_Status* status);
TF_CAPI_EXPORT void TF_ServerStop(TF_Server* server, TF_Status* status);
TF_CAPI_EXPORT void TF_ServerJoin(TF_Server* server, TF_Status* status);
TF_CAPI_EXPORT const char* TF_ServerTarget(TF_Server* server);
TF_CAPI_EXPORT void TF_DeleteServer(TF_Server* server);

// Calls `listener` with the text of each log entry.
TF_CAPI_EXPORT void TF_RegisterLogListener(void (*listener)(const char*));

// Returns UNIMPLEMENTED: gradflow has no plugins for file systems.
TF_CAPI_EXPORT void TF_RegisterFilesystemPlugin(const char* plugin_filename, TF_Status* status);

// Functions for the Python layer of TensorFlow. They change operations of a graph. A session that
// has already run such an operation may not notice the change.
TF_CAPI_EXPORT void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op,
                                                TF_Operation* input);
TF_CAPI_EXPORT void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                               TF_Buffer* attr_value_proto, TF_Status* status);
TF_CAPI_EXPORT void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                                 TF_Status* status);

// Has no effect: gradflow does not use full types.
TF_CAPI_EXPORT void TF_SetFullType(TF_Graph* graph, TF_Operation* op,
                                   const TF_Buffer* full_type_proto);
TF_CAPI_EXPORT void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device);
TF_CAPI_EXPORT void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op);

// Has no effect: an op without a shape function has outputs of unknown shape.
TF_CAPI_EXPORT void TF_SetRequireShapeInferenceFns(TF_Graph* graph, bool require);

// Has no effect: a session sees operations that are added.
TF_CAPI_EXPORT void TF_ExtendSession(TF_Session* session, TF_Status* status);

// Store and read the shape and type of the resource that an output refers to, as a serialized
// CppShapeInferenceResult.HandleData.
TF_CAPI_EXPORT TF_Buffer* TF_GetHandleShapeAndType(TF_Graph* graph, TF_Output output);
TF_CAPI_EXPORT void TF_SetHandleShapeAndType(TF_Graph* graph, TF_Output output, const void* proto,
                                             size_t proto_len, TF_Status* status);

// Adds an input to a While operation of version 1 graphs.
TF_CAPI_EXPORT void TF_AddWhileInputHack(TF_Graph* graph, TF_Output new_src, TF_Operation* dst,
                                         TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_C_API_H_
