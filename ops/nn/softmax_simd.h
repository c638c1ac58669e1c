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
// Sets e[i] = exp(x[i] - y) for i < n, and adds them to lanes. `e` may be `x`. Prefetches n
// elements each from next[0] and next[1] on, which may be any addresses: between passes over a row
// the processor's own prefetcher rests, and would find the next row too late.
void ExponentialsToLanes(const float* x, float y, int64_t n, const float* const next[2], float* e,
                         double* lanes);
// Adds z * (c - (x - y)) to lanes, where x - y is a float and the rest is computed in double.
void AddProductsToLanes(const float* x, float y, const float* z, double c, int64_t n,
                        double* lanes);

// These write n elements. `out` may be `x`; with non-temporal stores, it may be any address too,
// and hwy::FlushStream() is called on the same thread afterwards.

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
