// The product of a row and a matrix, compiled for several instruction sets. Results have the same
// bits with all of them.
#ifndef GRADFLOW_OPS_LINALG_ROW_PRODUCT_SIMD_H_
#define GRADFLOW_OPS_LINALG_ROW_PRODUCT_SIMD_H_

#include <cstdint>

namespace gradflow {

// Sets out[j] to the sum of x[p * x_stride] * y[p * y_stride + j] over p < k, for j < n. Adds the
// sum to out[j] if `add` is true. Reads y once and in order; libraries would pack y first, which
// pays off only for many rows.
// REQUIRES: n, k > 0
void MultiplyRow(int64_t n, int64_t k, const float* x, int64_t x_stride, const float* y,
                 int64_t y_stride, float* out, bool add);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_ROW_PRODUCT_SIMD_H_
