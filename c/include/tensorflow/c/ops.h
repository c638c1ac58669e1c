// Ops in C: definitions and shape functions.
//
// TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("ZeroOut");
// TF_OpDefinitionBuilderAddInput(builder, "x: T");
// TF_OpDefinitionBuilderAddOutput(builder, "y: T");
// TF_OpDefinitionBuilderAddAttr(builder, "T: {float, int32}");
// TF_RegisterOpDefinition(builder, status);
//
// Specs have TensorFlow's syntax (gradflow/core/op_def_builder.h).
#ifndef GRADFLOW_C_OPS_H_
#define GRADFLOW_C_OPS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

typedef struct TF_DimensionHandle TF_DimensionHandle;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;

#ifdef __cplusplus
extern "C" {
#endif

// Starts the definition of an op.
TF_CAPI_EXPORT TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name);

// Registers the op and frees the builder.
TF_CAPI_EXPORT void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status);

// Frees a builder that has not been registered.
TF_CAPI_EXPORT void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder);

// Add an attribute, input or output: "T: type", "x: T", "y: N * T".
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder,
                                                  const char* attr_spec);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder,
                                                   const char* input_spec);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder,
                                                    const char* output_spec);

// Set the flags of the definition.
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder,
                                                           bool is_commutative);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder,
                                                         bool is_aggregate);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder,
                                                        bool is_stateful);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool allows_uninitialized_input);

// Marks the op as deprecated since this version of GraphDefs.
TF_CAPI_EXPORT void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version,
                                                     const char* explanation);

// Sets the function that sets the shapes of the outputs when a node is added. Outputs that it does
// not set have unknown shapes.
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status));

// Returns the number of inputs.
TF_CAPI_EXPORT int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx);

// Returns a shape of unknown rank.
TF_CAPI_EXPORT TF_ShapeHandle* TF_NewShapeHandle(void);

// Stores the shape of input `i`.
TF_CAPI_EXPORT void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i,
                                                     TF_ShapeHandle* handle, TF_Status* status);

// Sets the shape of output `i`.
TF_CAPI_EXPORT void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i,
                                                      TF_ShapeHandle* handle, TF_Status* status);

// Return a new shape: of a scalar, or of a vector.
TF_CAPI_EXPORT TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx);
TF_CAPI_EXPORT TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* ctx,
                                                                      size_t size);

// Returns an unknown dimension.
TF_CAPI_EXPORT TF_DimensionHandle* TF_NewDimensionHandle(void);

// Reads an attribute of the node.
TF_CAPI_EXPORT void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx,
                                                         const char* attr_name, TF_DataType* val,
                                                         TF_Status* status);

// Return the rank of a shape, or -1, and whether it is known.
TF_CAPI_EXPORT int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx,
                                                    TF_ShapeHandle* handle);
TF_CAPI_EXPORT int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx,
                                                     TF_ShapeHandle* handle);

// Store the shape in `result`, with this rank if its rank is unknown. Return INVALID_ARGUMENT if it
// has another rank.
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx,
                                                     TF_ShapeHandle* handle, int64_t rank,
                                                     TF_ShapeHandle* result, TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx,
                                                            TF_ShapeHandle* handle, int64_t rank,
                                                            TF_ShapeHandle* result,
                                                            TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx,
                                                           TF_ShapeHandle* handle, int64_t rank,
                                                           TF_ShapeHandle* result,
                                                           TF_Status* status);

// Stores dimension `i`, which is counted from the end if it is negative.
TF_CAPI_EXPORT void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx,
                                                TF_ShapeHandle* shape_handle, int64_t i,
                                                TF_DimensionHandle* result);

// Stores dimensions [start, end). Negative numbers are counted from the end.
TF_CAPI_EXPORT void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx,
                                                     TF_ShapeHandle* shape_handle, int64_t start,
                                                     int64_t end, TF_ShapeHandle* result,
                                                     TF_Status* status);

// Makes the shapes of all outputs unknown.
TF_CAPI_EXPORT void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx,
                                                            TF_Status* status);

// Return whether a dimension is known, and its size, or -1.
TF_CAPI_EXPORT int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle);
TF_CAPI_EXPORT int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle);

// Stores the dimensions of both shapes.
TF_CAPI_EXPORT void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx,
                                                              TF_ShapeHandle* first,
                                                              TF_ShapeHandle* second,
                                                              TF_ShapeHandle* result,
                                                              TF_Status* status);

// Free a handle. Null has no effect.
TF_CAPI_EXPORT void TF_DeleteShapeHandle(TF_ShapeHandle* handle);
TF_CAPI_EXPORT void TF_DeleteDimensionHandle(TF_DimensionHandle* handle);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_OPS_H_
