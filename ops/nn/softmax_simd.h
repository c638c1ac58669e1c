// The inner loops of softmax and cross entropy over rows of float, for the best instruction set of
// the processor. Results have the same bits on all of them.
#ifndef GRADFLOW_OPS_NN_SOFTMAX_SIMD_H_
#define GRADFLOW_OPS_NN_SOFTMAX_SIMD_H_

#include <cstdint>

#include "gradflow/ops/common/simd.h"

namespace gradflow {

// The functions of lanes take n / kSumLanes * kSumLanes elements, of which element i goes to lane
// i modulo kSumLanes.

// Sets lanes to their maxima with the elements. NaN does not count.
void MaxOfLanes(const float* x, int64_t n, float* lanes);
// Adds the elements to lanes.
void AddToLanes(const float* x, int64_t n, double* lanes);
// Adds y * (c - x) to lanes, computed in double.
void AddProductsToLanes(const float* x, const float* y, double c, int64_t n, double* lanes);

// out[i] = x[i] - y, i < n. `out` may be `x`.
void SubtractFromFloats(const float* x, float y, int64_t n, float* out);
// x[i] /= y, i < n.
void DivideFloats(float* x, float y, int64_t n);
// out[i] = x[i] / y - z[i], i < n.
void DivideAndSubtractFloats(const float* x, float y, const float* z, int64_t n, float* out);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_SOFTMAX_SIMD_H_
