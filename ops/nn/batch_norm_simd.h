// The inner loops of batch normalization, over raw pointers. Rows (NHWC) have coefficients and sums
// per column; planes (NCHW) have them per channel. The loops compute in float and add in double.
// Results have the same bits on all processors.
//
// Results may be written over the inputs. `non_temporal` is the result of
// ShouldUseNonTemporalStores (simd.h).
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
// The mean consists of two floats, because a rounding error of a large mean can be large compared
// to a small stddev.
struct BatchNormCoefficients {
  const float* mean;
  const float* mean_rest;
  const float* factor;
  const float* offset;

  // Returns the coefficients, starting at column or channel i.
  BatchNormCoefficients At(int64_t i) const {
    return {mean + i, mean_rest + i, factor + i, offset + i};
  }
};

// Adds up x - shift and (x - shift)^2 for each column.
void BatchNormMomentsOfRows(ElementType type, const void* x, const BatchNormRows& rows,
                            const float* shift, double* sum, double* sum_of_squares);
void BatchNormRowsForward(ElementType type, const void* x, void* y, const BatchNormRows& rows,
                          const BatchNormCoefficients& coefficients, bool non_temporal);

// Adds up x - shift and (x - shift)^2 for each channel, in lanes[channels][2][kSumLanes].
// REQUIRES: the shifts can be represented in the element type
void BatchNormMomentsOfPlanes(ElementType type, const void* x, const Planes& planes,
                              const float* shift, double* lanes);
void BatchNormPlanesForward(ElementType type, const void* x, void* y, const Planes& planes,
                            const BatchNormCoefficients& coefficients, bool non_temporal);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_BATCH_NORM_SIMD_H_
