// The inner loops of resampling, over rows of floats, compiled for several instruction sets.
// Results have the same bits with all of them.
#ifndef GRADFLOW_OPS_IMAGE_RESAMPLE_SIMD_H_
#define GRADFLOW_OPS_IMAGE_RESAMPLE_SIMD_H_

#include <cstdint>

namespace gradflow {

// The formula of a weighted sum of pixels (or rows) a, b, ... with weights v, w, ...
enum class Weighting {
  // Two pixels: a + (b - a) * w, which is a * v + b * w for v = 1 - w, and rounds like TensorFlow.
  kLinear,
  // Four pixels: a * v + b * w + ..., in order.
  kFour,
  // Any number of pixels, added in order in double.
  kDouble,
};

// A row of pixels of `depth` floats.
struct PixelRow {
  const float* data;
  int64_t pixels;
  int64_t depth;
};

// Sets pixel i of y, for i < `pixels`, to the weighted sum of the pixels indices[i * taps + k] of x
// with the weights weights[i * taps + k], for k < taps.
void ResamplePixels(Weighting weighting, const PixelRow& x, const int32_t* indices,
                    const float* weights, int64_t taps, int64_t pixels, float* y);

// Sets y[i] = a[i] + (b[i] - a[i]) * weight for i < n.
void InterpolateRows(const float* a, const float* b, float weight, int64_t n, bool non_temporal,
                     float* y);
// Sets y[i] = rows[0][i] * weights[0] + ..., in order, for i < n. With `add`, the sum starts with
// y[i].
// REQUIRES: count >= 1
void AddRows(const float* const* rows, const float* weights, int64_t count, bool add, int64_t n,
             bool non_temporal, float* y);

// ---- Gradients, with sums in double ----

// sums[i] += x[i] * weight for i < n.
void AddScaledFloats(const float* x, float weight, int64_t n, double* sums);
// Adds pixel i of `sums`, times weights[i * taps + k], to pixel indices[i * taps + k] of dx, for i
// < `pixels` and k < taps. Pixels have `depth` numbers.
void DistributePixels(const double* sums, const int32_t* indices, const float* weights,
                      int64_t taps, int64_t pixels, int64_t depth, double* dx);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_IMAGE_RESAMPLE_SIMD_H_
