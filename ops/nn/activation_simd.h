// Activations of float over contiguous elements, for the best instruction set of the processor.
// Results have the same bits on all of them.
#ifndef GRADFLOW_OPS_NN_ACTIVATION_SIMD_H_
#define GRADFLOW_OPS_NN_ACTIVATION_SIMD_H_

#include <cstdint>

namespace gradflow {

// Set y[i] for i < n. `y` may be `x`, or `dy`.

// To positive * x, or negative * (e^x - 1) where x < 0.
void ApplyElu(float positive, float negative, const float* x, float* y, int64_t n);
// To log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which does not overflow.
void ApplySoftplus(const float* x, float* y, int64_t n);
// To dy / (1 + e^-x).
void ApplySoftplusGrad(const float* dy, const float* x, float* y, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_ACTIVATION_SIMD_H_
