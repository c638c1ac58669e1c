// The inner loops of pooling and its gradients, over rows of pixels of `depth` floats, compiled for
// several instruction sets. Results have the same bits with all of them.
#ifndef GRADFLOW_OPS_NN_POOL_SIMD_H_
#define GRADFLOW_OPS_NN_POOL_SIMD_H_

#include <cstdint>

#include "gradflow/ops/nn/pool_windows.h"

namespace gradflow {

// Vectors do not help for pixels with fewer floats.
inline constexpr int64_t kMinPoolVector = 16;

// kMax is the maximum and ignores NaN. kMean is the sum divided by a number of elements.
enum class PoolKind { kMax, kSum, kMean };

// Combines `rows` rows that are `stride` elements apart. Sets out[i] for i < n if `first` is true;
// otherwise combines the result with out[i].
void PoolRows(PoolKind kind, const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
              float* out);
// Combines windows. Sets pixel i of y, for i < `pixels`, to the combination of the pixels
// windows[i] of `rows` rows that are `stride` elements apart. Combines the rows of each column
// first. A mean is divided by `count` times the number of columns; if `count` is 0, the sum is not
// divided. Combining the output of PoolRows as one row gives the same bits as combining all rows in
// one call.
void PoolWindows(PoolKind kind, const float* x, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int64_t count,
                 bool non_temporal, float* y);
// Finds the maxima of the windows windows[i], and their positions, in `rows` rows that are `stride`
// elements apart. With `merge`, the maxima of the previous rows are included. The first pixel of
// the first row has position `first`; positions increase by `row_positions` from row to row. The
// first of equal elements wins; NaN is the maximum if it comes first. Empty windows have position
// -1.
void MergeMaxima(const float* x, int64_t stride, int64_t rows, const PoolRange* windows,
                 int64_t pixels, int64_t depth, int32_t first, int32_t row_positions, bool merge,
                 float* maxima, int32_t* positions);
// Computes dx, a row of the input whose first pixel has position `first`. Sets each pixel i to the
// sum of the gradients of the windows that have their maximum at this pixel. windows[i] is the
// range of windows that cover the pixel, in each of `rows` rows of windows that are `stride`
// elements apart. With `add`, adds the sum to dx instead.
void AddToMaxima(const float* dy, const int32_t* positions, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int32_t first, bool add,
                 bool non_temporal, float* dx);
// out[i] += x[i] * weight for i < n.
void AddWeighted(const float* x, float weight, int64_t n, float* out);
// Multiplies pixel i of x by weights[i].
void ScalePixels(const float* weights, int64_t pixels, int64_t depth, float* x);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_POOL_SIMD_H_
