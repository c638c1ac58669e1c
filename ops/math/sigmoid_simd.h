// Sigmoid over contiguous elements, compiled for several instruction sets. Results have the same
// bits with all of them, within 2.5 units in the last place.
#ifndef GRADFLOW_OPS_MATH_SIGMOID_SIMD_H_
#define GRADFLOW_OPS_MATH_SIGMOID_SIMD_H_

#include <cstdint>

namespace gradflow {

// Sets y[i] = 1 / (1 + e^-x[i]) for i < n. `y` may be `x`.
void ApplySigmoid(const float* x, float* y, int64_t n);
void ApplySigmoid(const double* x, double* y, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_SIGMOID_SIMD_H_
