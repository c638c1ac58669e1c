// The inner loops of softmax and cross entropy over rows of floats, compiled for several
// instruction sets. Results have the same bits with all of them.
#ifndef GRADFLOW_OPS_NN_SOFTMAX_SIMD_H_
#define GRADFLOW_OPS_NN_SOFTMAX_SIMD_H_

#include <cstdint>

#include "gradflow/ops/common/simd.h"

namespace gradflow {

// The functions of lanes process the first n / kSumLanes * kSumLanes elements. Element i goes to
// lane i modulo kSumLanes.

// Sets each lane to the maximum of the lane and its elements. Ignores NaN.
void MaxOfLanes(const float* x, int64_t n, float* lanes);
// Adds the elements to their lanes.
void AddToLanes(const float* x, int64_t n, double* lanes);
// Sets e[i] = exp(x[i] - y) for i < n, and adds them to their lanes. `e` may be `x`. Prefetches n
// elements each from next[0] and next[1] on, which may be any addresses. The processor's own
// prefetcher stops between passes over a row, and would find the next row too late.
void ExponentialsToLanes(const float* x, float y, int64_t n, const float* const next[2], float* e,
                         double* lanes);
// Adds z * (c - (x - y)) to the lanes. x - y is a float; the rest is computed in double.
void AddProductsToLanes(const float* x, float y, const float* z, double c, int64_t n,
                        double* lanes);

// These functions write n elements. `out` may be `x`, and may have any alignment. After
// non-temporal stores, call hwy::FlushStream() on the same thread.

// out[i] = x[i] - y.
void SubtractFromFloats(const float* x, float y, int64_t n, float* out);
// out[i] = (x[i] - y) - z.
void SubtractTwiceFromFloats(const float* x, float y, float z, int64_t n, bool non_temporal,
                             float* out);
// out[i] = x[i] / y.
void DivideFloats(const float* x, float y, int64_t n, bool non_temporal, float* out);
// out[i] = x[i] / y - z[i].
void DivideAndSubtractFloats(const float* x, float y, const float* z, int64_t n, bool non_temporal,
                             float* out);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_SOFTMAX_SIMD_H_
