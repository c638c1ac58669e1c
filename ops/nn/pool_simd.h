// The inner loops of pooling and its gradients, over rows of pixels of `depth` floats, for the best
// instruction set of the processor. Results have the same bits on all of them.
#ifndef GRADFLOW_OPS_NN_POOL_SIMD_H_
#define GRADFLOW_OPS_NN_POOL_SIMD_H_

#include <cstdint>

#include "gradflow/ops/nn/pool_windows.h"

namespace gradflow {

// Pixels of fewer floats are no faster by vectors.
inline constexpr int64_t kMinPoolVector = 16;

// kMax is the maximum, for which NaN does not count; kMean the sum, divided by a number of
// elements.
enum class PoolKind { kMax, kSum, kMean };

// Combines the elements of `rows` rows that are `stride` apart: sets out[i], i < n, or combines
// them with out[i] unless `first`.
void PoolRows(PoolKind kind, const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
              float* out);
// Combines windows: sets pixel i < `pixels` of y to the combination of pixels windows[i] of `rows`
// rows that are `stride` apart, the rows of each column first. A mean divides by `count`
// times the number of columns, and by nothing if `count` is 0. With one row, the results of
// PoolRows give the same bits as all rows in one step.
void PoolWindows(PoolKind kind, const float* x, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int64_t count,
                 bool non_temporal, float* y);
// Finds the maxima, and their positions, of pixels windows[i] of `rows` rows that are `stride`
// apart: with `merge`, of these and of what was found in the rows before. The first pixel of the
// first row has position `first`, that of the next `first + row_positions`. Of equal elements, the
// first one stays; NaN is the maximum if it comes first. Empty windows have position -1.
void MergeMaxima(const float* x, int64_t stride, int64_t rows, const PoolRange* windows,
                 int64_t pixels, int64_t depth, int32_t first, int32_t row_positions, bool merge,
                 float* maxima, int32_t* positions);
// Sets pixel i of dx, a row of the input whose first pixel has position `first`, to the sum of the
// gradients of those windows that have their maximum there. windows[i] are the windows that cover
// the pixel, in each of `rows` rows of windows that are `stride` apart. With `add`, adds the sum.
void AddToMaxima(const float* dy, const int32_t* positions, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int32_t first, bool add,
                 bool non_temporal, float* dx);
// out[i] += x[i] * weight, i < n.
void AddWeighted(const float* x, float weight, int64_t n, float* out);
// Multiplies pixel i of x by weights[i].
void ScalePixels(const float* weights, int64_t pixels, int64_t depth, float* x);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_POOL_SIMD_H_
