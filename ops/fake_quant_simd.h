// The inner loops of the fake-quant ops, over raw pointers. Elementwise results have the bits of
// the formulas in float, sums the same bits on every processor.
//
// Results may be written over inputs of the same elements, and inputs may be the same memory.
#ifndef GRADFLOW_OPS_FAKE_QUANT_SIMD_H_
#define GRADFLOW_OPS_FAKE_QUANT_SIMD_H_

#include <cstdint>

namespace gradflow {

// How to quantise: y = floor(shift / scale - zero + 0.5) * scale, or with `shift * inverse` for
// `shift / scale`, where shift = max(min(x, max), min) - min.
struct FakeQuantStep {
  float min;
  float max;
  float scale;
  float inverse;
  float zero;
};

// The same for each of a row's columns. Where `keep` has no bits set, y is 0 for any x; elsewhere
// it has all bits set.
struct FakeQuantColumns {
  const float* min;
  const float* max;
  const float* scale;
  const float* inverse;
  const float* zero;
  const uint32_t* keep;
};

// Of each of a row's columns: the range in which gradients pass, and what they are multiplied by
// outside.
struct FakeQuantRanges {
  const float* min;
  const float* max;
  const float* outside;
};

void FakeQuantDivide(const float* x, float* y, int64_t n, const FakeQuantStep& step);
void FakeQuantMultiply(const float* x, float* y, int64_t n, const FakeQuantStep& step);
// Rows are `stride` elements apart.
void FakeQuantRows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
                   const FakeQuantColumns& steps);

// dx = g * (min <= x <= max ? 1 : 0)
void FakeQuantGrad(const float* g, const float* x, float* dx, int64_t n, float min, float max);
// And adds to lanes[2][kSumLanes] the sums of g where x < min, and where x > max.
void FakeQuantGradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                       double* lanes);
// And the same per column, adding to sum_below[columns] and sum_above[columns].
void FakeQuantGradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
                       int64_t columns, const FakeQuantRanges& ranges, double* sum_below,
                       double* sum_above);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_FAKE_QUANT_SIMD_H_
