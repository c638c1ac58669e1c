// TF_Shape: a shape that may be unknown.
#ifndef GRADFLOW_C_TF_SHAPE_H_
#define GRADFLOW_C_TF_SHAPE_H_

#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

// A shape.
typedef struct TF_Shape TF_Shape;

// Returns a shape of unknown rank.
TF_CAPI_EXPORT TF_Shape* TF_NewShape(void);

// Returns the rank, or -1 if it is unknown.
TF_CAPI_EXPORT int TF_ShapeDims(const TF_Shape* shape);

// Returns dimension `d`, or -1 if it is unknown or does not exist.
TF_CAPI_EXPORT int64_t TF_ShapeDimSize(const TF_Shape* shape, int d);

// Frees the shape. Null has no effect.
TF_CAPI_EXPORT void TF_DeleteShape(TF_Shape* shape);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_TF_SHAPE_H_
