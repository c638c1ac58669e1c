// The inner loops of the fake-quant ops, over raw pointers. Elementwise results have the same bits
// as the formulas evaluated in float. Sums have the same bits on all processors.
//
// Results may be written over the inputs, and inputs may be the same memory. `non_temporal` is the
// result of ShouldUseNonTemporalStores (simd.h).
#ifndef GRADFLOW_OPS_QUANT_FAKE_QUANT_SIMD_H_
#define GRADFLOW_OPS_QUANT_FAKE_QUANT_SIMD_H_

#include <cstdint>

namespace gradflow {

// The range of quantized integers. It follows from the attributes num_bits and narrow_range.
struct FakeQuantLevels {
  float lowest = 0;
  float highest = 255;
};

// The coefficients of y = floor(shift / scale - zero + 0.5) * scale, where
// shift = max(min(x, max), min) - min. FakeQuantMultiply computes `shift * inverse` instead of
// `shift / scale`.
struct FakeQuantStep {
  float min;
  float max;
  float scale;
  float inverse;
  float zero;
};

// A FakeQuantStep for each column of a row. `keep` has all bits set, or no bits if y is 0 for all
// x.
struct FakeQuantColumns {
  float* min;
  float* max;
  float* scale;
  float* inverse;
  float* zero;
  uint32_t* keep;
};

// For each column of a row: the range of inputs that pass gradients, and the factor of gradients
// outside of the range.
struct FakeQuantRanges {
  float* min;
  float* max;
  float* outside;
};

bool AllFinite(const float* values, int64_t n);

// Nudges a range so that zero is one of its levels.
FakeQuantStep Nudge(const FakeQuantLevels& levels, float min, float max);
// Nudges ranges min[n], max[n]. A range with min = max = 0 has not been measured yet: results are
// 0, and gradients pass unchanged.
void NudgeColumns(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                  const FakeQuantColumns& columns);
void NudgeRanges(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                 const FakeQuantRanges& ranges);

void FakeQuantDivide(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                     bool non_temporal);
void FakeQuantMultiply(const float* x, float* y, int64_t n, const FakeQuantStep& step,
                       bool non_temporal);
// Sets y to the integers that stand for the results of FakeQuantDivide (`divides`) or
// FakeQuantMultiply: the results divided by the scale, plus the zero point `step.zero`. NaN becomes
// the zero point. REQUIRES: there are at most 256 levels
void FakeQuantIntegers(const float* x, uint8_t* y, int64_t n, const FakeQuantStep& step,
                       bool divides);
// Processes rows that are `stride` elements apart.
void FakeQuantRows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
                   const FakeQuantColumns& steps, bool non_temporal);

// dx = g * (min <= x <= max ? 1 : 0)
void FakeQuantGrad(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                   bool non_temporal);
// Computes FakeQuantGrad(), and adds the sums of g * (x < min ? 1 : 0) and of g * (x > max ? 1 : 0)
// to lanes[2][kSumLanes]. An infinite or NaN gradient makes a sum NaN even if its mask is 0.
void FakeQuantGradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                       bool non_temporal, double* lanes);
// Computes FakeQuantGradSums() for each column, and adds the sums to sum_below[columns] and
// sum_above[columns].
void FakeQuantGradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
                       int64_t columns, const FakeQuantRanges& ranges, bool non_temporal,
                       double* sum_below, double* sum_above);

// Rounds the sums of the ranges min[n], max[n] to float. If min = max = 0, all gradients pass and
// the sum becomes 0. NaN results are always the same NaN.
void SumsToFloats(const double* sums, const float* min, const float* max, int64_t n, float* result);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_FAKE_QUANT_SIMD_H_
