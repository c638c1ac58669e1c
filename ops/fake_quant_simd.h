// The inner loops of the fake-quant ops, over raw pointers. Elementwise results have the bits of
// the formulas in float, sums the same bits on every processor.
//
// Results may be written over inputs of the same elements, and inputs may be the same memory.
// `stream` is what StreamsTo (simd.h) says of the result.
#ifndef GRADFLOW_OPS_FAKE_QUANT_SIMD_H_
#define GRADFLOW_OPS_FAKE_QUANT_SIMD_H_

#include <cstdint>

namespace gradflow {

// The integers that numbers are quantised to, by the attributes num_bits and narrow_range.
struct FakeQuantLevels {
  float lowest = 0;
  float highest = 255;
};

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
  float* min;
  float* max;
  float* scale;
  float* inverse;
  float* zero;
  uint32_t* keep;
};

// Of each of a row's columns: the range in which gradients pass, and what they are multiplied by
// outside.
struct FakeQuantRanges {
  float* min;
  float* max;
  float* outside;
};

bool AllFinite(const float* values, int64_t n);

// The range nudged so that zero is one of its levels, with what the formulas need of it.
FakeQuantStep Nudge(const FakeQuantLevels& levels, float min, float max);
// The same for min[n] and max[n], where min = max = 0 says that a range has not been measured yet:
// numbers become 0, gradients pass.
void NudgeColumns(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                  const FakeQuantColumns& columns);
void NudgeRanges(const FakeQuantLevels& levels, const float* min, const float* max, int64_t n,
                 const FakeQuantRanges& ranges);

void FakeQuantDivide(const float* x, float* y, int64_t n, const FakeQuantStep& step, bool stream);
void FakeQuantMultiply(const float* x, float* y, int64_t n, const FakeQuantStep& step, bool stream);
// Rows are `stride` elements apart.
void FakeQuantRows(const float* x, float* y, int64_t rows, int64_t stride, int64_t columns,
                   const FakeQuantColumns& steps, bool stream);

// dx = g * (min <= x <= max ? 1 : 0)
void FakeQuantGrad(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                   bool stream);
// And adds to lanes[2][kSumLanes] the sums of g where x < min, and where x > max.
void FakeQuantGradSums(const float* g, const float* x, float* dx, int64_t n, float min, float max,
                       bool stream, double* lanes);
// And the same per column, adding to sum_below[columns] and sum_above[columns].
void FakeQuantGradRows(const float* g, const float* x, float* dx, int64_t rows, int64_t stride,
                       int64_t columns, const FakeQuantRanges& ranges, bool stream,
                       double* sum_below, double* sum_above);

// Rounded to float; a NaN is always the same one.
void SumsToFloats(const double* sums, int64_t n, float* result);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_FAKE_QUANT_SIMD_H_
