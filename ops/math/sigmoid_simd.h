// The loops of Sigmoid around its exponential, for the best instruction set of the processor.
// Results have the same bits on all of them.
#ifndef GRADFLOW_OPS_MATH_SIGMOID_SIMD_H_
#define GRADFLOW_OPS_MATH_SIGMOID_SIMD_H_

#include <cstdint>

namespace gradflow {

// Set y[i] = -|x[i]| for i < n.
void NegatedMagnitudes(const float* x, float* y, int64_t n);
void NegatedMagnitudes(const double* x, double* y, int64_t n);

// Set y[i] = 1 / (1 + e^-x[i]) for i < n, where e[i] is the exponential of -|x[i]|. `y` may be `x`
// or `e`.
void SigmoidOfExponential(const float* x, const float* e, float* y, int64_t n);
void SigmoidOfExponential(const double* x, const double* e, double* y, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_SIGMOID_SIMD_H_
