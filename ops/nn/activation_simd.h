// Activations over contiguous floats, compiled for several instruction sets. Results have the same
// bits with all of them.
#ifndef GRADFLOW_OPS_NN_ACTIVATION_SIMD_H_
#define GRADFLOW_OPS_NN_ACTIVATION_SIMD_H_

#include <cstdint>

namespace gradflow {

// These functions set y[i] for i < n. `y` may be `x` or `dy`.

// y = positive * x where x >= 0, and negative * (e^x - 1) where x < 0.
void ApplyElu(float positive, float negative, const float* x, float* y, int64_t n);
// y = log(1 + e^x), computed as max(x, 0) + log(1 + e^-|x|), which does not overflow.
void ApplySoftplus(const float* x, float* y, int64_t n);
// y = dy / (1 + e^-x).
void ApplySoftplusGrad(const float* dy, const float* x, float* y, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_ACTIVATION_SIMD_H_
