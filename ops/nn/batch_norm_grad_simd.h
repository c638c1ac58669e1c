// The inner loops of the gradients of batch normalization. See batch_norm_simd.h.
#ifndef GRADFLOW_OPS_NN_BATCH_NORM_GRAD_SIMD_H_
#define GRADFLOW_OPS_NN_BATCH_NORM_GRAD_SIMD_H_

#include <cstdint>

#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/nn/batch_norm_simd.h"

namespace gradflow {

// dx = (dy - mean_dy - ((x - mean) * slope + mean_dy_rest)) * factor
//
// The mean of dy consists of two parts, like the mean of x in BatchNormCoefficients.
struct BatchNormGradCoefficients {
  const float* mean;
  const float* mean_dy;
  const float* mean_dy_rest;
  const float* slope;
  const float* factor;
};

// Adds up dy and dy * (x - mean) for each column.
void BatchNormGradSumsOfRows(ElementType type, const void* dy, const void* x,
                             const BatchNormRows& rows, const float* mean, double* sum_dy,
                             double* sum_product);
void BatchNormGradRows(ElementType type, const void* dy, const void* x, void* dx,
                       const BatchNormRows& rows, const BatchNormGradCoefficients& coefficients,
                       bool non_temporal);
// Adds up the sums of BatchNormGradSumsOfRows(), and computes dx = dy * factor.
void BatchNormFrozenGradRows(ElementType type, const void* dy, const void* x, void* dx,
                             const BatchNormRows& rows, const float* mean, const float* factor,
                             bool non_temporal, double* sum_dy, double* sum_product);

// The same functions for planes. Sums are added to lanes[channels][2][kSumLanes].
void BatchNormGradSumsOfPlanes(ElementType type, const void* dy, const void* x,
                               const Planes& planes, const float* mean, double* lanes);
void BatchNormGradPlanes(ElementType type, const void* dy, const void* x, void* dx,
                         const Planes& planes, const BatchNormGradCoefficients& coefficients,
                         bool non_temporal);
void BatchNormFrozenGradPlanes(ElementType type, const void* dy, const void* x, void* dx,
                               const Planes& planes, const float* mean, const float* factor,
                               bool non_temporal, double* lanes);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_BATCH_NORM_GRAD_SIMD_H_
