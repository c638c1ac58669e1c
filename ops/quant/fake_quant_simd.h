// The inner loops of the fake-quant ops, over raw pointers. Elementwise results have the bits of
// the formulas in float, and sums have the same bits on every processor.
//
// Results may be written over inputs of the same elements, and inputs may be the same memory.
// `non_temporal` is what ShouldUseNonTemporalStores (simd.h) returns for the result.
#ifndef GRADFLOW_OPS_QUANT_FAKE_QUANT_SIMD_H_
#define GRADFLOW_OPS_QUANT_FAKE_QUANT_SIMD_H_

#include <cstdint>

namespace gradflow {

// The integers that numbers are quantized to, by the attributes num_bits and narrow_range.
struct FakeQuantLevels {
  float lowest = 0;
  float highest = 255;
};

// The coefficients of y = floor(shift / scale - zero + 0.5) * scale, where
// shift = max(min(x, max), min) - min. FakeQuantMultiply has `shift * inverse` for `shift / scale`.
struct FakeQuantStep {
  float min;
  float max;
  float scale;
  float inverse;
  float zero;
};

// A FakeQuantStep for each of a row's columns. `keep` has all bits set, or none where y is 0 for
// any x.
struct FakeQuantColumns {
  float* min;
  float* max;
  float* scale;
  float* inverse;
  float* zero;
  uint32_t* keep;
};

// The range of each of a row's columns in which gradients pass, and their factor outside.
struct FakeQuantRanges {
  float* min;
  float* max;
  float* outside;
};

bool AllFinite(const float* values, int64_t n);

// Nudges a range so that zero is one of its levels.
FakeQuantStep Nudge(const FakeQuantLevels& levels, float min, float max);
// Nudges ranges min[n], max[n]. A range of min = max = 0 has not been measured yet: numbers become
// 0, gradients pass.
void NudgeColumns(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                  const FakeQuantColumns& columns);
void NudgeRanges(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                 const FakeQuantRanges& ranges);

void FakeQuantDivide(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                     bool non_temporal);
void FakeQuantMultiply(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                       bool non_temporal);
// Rows are `stride` elements apart.
void FakeQuantRows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
                   const FakeQuantColumns& steps, bool non_temporal);

// dx = g * (min <= x <= max ? 1 : 0)
void FakeQuantGrad(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                   bool non_temporal);
// Does the same, and adds to lanes[2][kSumLanes] the sums of g * (x < min ? 1 : 0) and of
// g * (x > max ? 1 : 0). An infinite or NaN gradient makes a sum NaN also where its mask is 0.
void FakeQuantGradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                       bool non_temporal, double* lanes);
// Does the same per column, and adds to sum_below[columns] and sum_above[columns].
void FakeQuantGradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
                       int64_t columns, const FakeQuantRanges& ranges, bool non_temporal,
                       double* sum_below, double* sum_above);

// Rounds the sums of the ranges min[n], max[n] to float. Those of a range of min = max = 0, which
// passes all gradients, become 0. A NaN is always the same one.
void SumsToFloats(const double* sums, const float* min, const float* max, int64_t n, float* result);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_FAKE_QUANT_SIMD_H_
