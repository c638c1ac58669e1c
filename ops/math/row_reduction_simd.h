// Sums, running sums, maxima and minima of rows of floats, compiled for several instruction sets.
// Results have the same bits with all of them.
#ifndef GRADFLOW_OPS_MATH_ROW_REDUCTION_SIMD_H_
#define GRADFLOW_OPS_MATH_ROW_REDUCTION_SIMD_H_

#include <cstdint>

namespace gradflow {

// Adds x[r * row_stride + j] to sums[j] for all r in [0, rows), in order, and all j in [0, n).
void SumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, double* sums);
// Set maxima[j] (minima[j]) to x[r * row_stride + j] if that element is greater (less) or NaN, in
// the same order.
void MaxRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* maxima);
void MinRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* minima);

// Adds like SumRows. Sets out[r * row_stride + j] to sum j before the addition if `exclusive` is
// true, otherwise after the addition. `out` may be `x`. Uses non-temporal stores if `non_temporal`
// is true; then call StoreFence() on the same thread before other threads read the results.
// REQUIRES: if `non_temporal` is true, the rows of `out` begin at cache lines
void ScanSumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, bool exclusive,
                 bool non_temporal, double* sums, float* out);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_ROW_REDUCTION_SIMD_H_
