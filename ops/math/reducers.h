// Reductions by element type, for ops that reduce along axes or by segment.
#ifndef GRADFLOW_OPS_MATH_REDUCERS_H_
#define GRADFLOW_OPS_MATH_REDUCERS_H_

#include "gradflow/core/types.h"
#include "gradflow/ops/math/reduction.h"

namespace gradflow {

// REQUIRES (for the first three): `dtype` is one of NumberTypes()
Reducer SumReducer(DataType dtype);
Reducer MeanReducer(DataType dtype);
Reducer ProdReducer(DataType dtype);
// REQUIRES (for both): `dtype` is one of RealTypes()
Reducer MaxReducer(DataType dtype);
Reducer MinReducer(DataType dtype);
// The sum divided by the square root of the number of elements.
// REQUIRES: `dtype` is one of FloatingTypes()
Reducer SqrtNReducer(DataType dtype);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_REDUCERS_H_
