// Sums, running sums, maxima and minima of rows of floats, for the best instruction set of the
// processor. Results have the same bits on all of them.
#ifndef GRADFLOW_OPS_MATH_ROW_REDUCTION_SIMD_H_
#define GRADFLOW_OPS_MATH_ROW_REDUCTION_SIMD_H_

#include <cstdint>

namespace gradflow {

// Adds x[r * row_stride + j] to sums[j], for each r in [0, rows) in order and each j in [0, n).
void SumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, double* sums);
// Set maxima[j] or minima[j] to x[r * row_stride + j] where that is greater, or less, or NaN. In
// the same order.
void MaxRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* maxima);
void MinRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* minima);

// Adds like SumRows, and sets out[r * row_stride + j] to sum j, after the addition or, if
// `exclusive`, before. With non-temporal stores if `non_temporal`; then call StoreFence() on the
// same thread before others read the results. `out` may be `x`. REQUIRES: if `non_temporal`, rows
// of `out` begin at cache lines
void ScanSumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, bool exclusive,
                 bool non_temporal, double* sums, float* out);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_ROW_REDUCTION_SIMD_H_
