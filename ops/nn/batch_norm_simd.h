// The inner loops of batch normalization, over raw pointers to elements of a type: on rows, each
// column of which has its coefficients and sums (NHWC), and on planes, each channel of which has
// them (NCHW). They compute in float and add in double. Results have the same bits on every
// processor.
//
// Results may be written over inputs of the same elements. `non_temporal` is what
// ShouldUseNonTemporalStores (simd.h) returns for the result.
#ifndef GRADFLOW_OPS_NN_BATCH_NORM_SIMD_H_
#define GRADFLOW_OPS_NN_BATCH_NORM_SIMD_H_

#include <cstdint>

#include "gradflow/ops/common/plane_blocks.h"
#include "gradflow/ops/common/simd.h"

namespace gradflow {

// Rows that are `stride` elements apart.
struct BatchNormRows {
  int64_t rows;
  int64_t stride;
  int64_t columns;
};

// y = (x - mean - mean_rest) * factor + offset
//
// The mean comes in two parts, which together have the accuracy of two floats: half a unit in the
// last place of a large mean may be much of a small stddev.
struct BatchNormCoefficients {
  const float* mean;
  const float* mean_rest;
  const float* factor;
  const float* offset;

  // Returns the coefficients from column or channel i on.
  BatchNormCoefficients At(int64_t i) const {
    return {mean + i, mean_rest + i, factor + i, offset + i};
  }
};

// Adds the sums of x - shift and of (x - shift)^2 of each column.
void BatchNormMomentsOfRows(ElementType type, const void* x, const BatchNormRows& rows,
                            const float* shift, double* sum, double* sum_of_squares);
void BatchNormRowsForward(ElementType type, const void* x, void* y, const BatchNormRows& rows,
                          const BatchNormCoefficients& coefficients, bool non_temporal);

// Adds the same sums to lanes[channels][2][kSumLanes].
// REQUIRES: shifts can be represented in the type of the elements
void BatchNormMomentsOfPlanes(ElementType type, const void* x, const Planes& planes,
                              const float* shift, double* lanes);
void BatchNormPlanesForward(ElementType type, const void* x, void* y, const Planes& planes,
                            const BatchNormCoefficients& coefficients, bool non_temporal);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_BATCH_NORM_SIMD_H_
