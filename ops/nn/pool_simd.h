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
// Combines pixels: sets pixel i < `pixels` of y to the combination of pixels windows[i] of x. Means
// are of `count` elements for each pixel.
void PoolPixels(PoolKind kind, const float* x, const PoolRange* windows, int64_t pixels,
                int64_t depth, int64_t count, float* y);
// Merges pixels windows[i] of a row of the input into maxima and their positions, which are -1 if
// there is none yet. The row's first pixel has position `first`. Of equal elements, the first one
// stays.
void MergeMaxima(const float* x, const PoolRange* windows, int64_t pixels, int64_t depth,
                 int32_t first, float* maxima, int32_t* positions);
// Adds dy to the elements of a row of the input, whose first pixel has position `first`, that are
// the maxima of windows[i].
void AddToMaxima(const float* dy, const int32_t* positions, const PoolRange* windows,
                 int64_t pixels, int64_t depth, int32_t first, float* dx);
// out[i] += x[i] * weight, i < n.
void AddWeighted(const float* x, float weight, int64_t n, float* out);
// Multiplies pixel i of x by weights[i].
void ScalePixels(const float* weights, int64_t pixels, int64_t depth, float* x);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_POOL_SIMD_H_
