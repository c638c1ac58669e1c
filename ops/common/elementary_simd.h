// Elementary functions over contiguous elements. Results have the same bits on every processor, for
// all vector sizes and all positions in the array. exp_log-inl.h and tanh_erf_atan-inl.h compute
// Exp, Expm1, Log, Log1p, Tanh, Erf, Asin, Acos, Atan and Atan2 of floats; SLEEF's deterministic
// functions compute the rest. The exception is Lgamma of negative numbers: the C library computes
// it, and its bits may differ between processors.
//
// Most results are within 1 unit in the last place (ulp) of the exact result. The other bounds are:
// - floats: 1.1 ulps for Expm1 and Log1p, 1.3 for Tanh and Acos, 2 for Atan and Atan2, 2.2 for Erf,
//   2.5 for Asin;
// - doubles: 2 for Erf, 5 for Lgamma of negative numbers;
// - both: 2 for Erfc, for Lgamma, and for Cosh and Sinh near their overflow.
// The error can be 1 ulp larger near and below the smallest normal number.
//
//   ApplyElementary(Elementary::kExp, x, y, n);
#ifndef GRADFLOW_OPS_COMMON_ELEMENTARY_SIMD_H_
#define GRADFLOW_OPS_COMMON_ELEMENTARY_SIMD_H_

#include <cstdint>

namespace gradflow {

enum class Elementary {
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kCos,
  kCosh,
  kErf,
  kErfc,
  kExp,
  kExpm1,
  kLgamma,
  kLog,
  kLog1p,
  kSin,
  kSinh,
  kTan,
  kTanh,
};

// Sets y[i] = f(x[i]) for i < n. `y` may be `x`.
void ApplyElementary(Elementary f, const float* x, float* y, int64_t n);
void ApplyElementary(Elementary f, const double* x, double* y, int64_t n);

// kAtan2 is the angle of the point (y, x); kPow is x to the power of y.
enum class Elementary2 { kAtan2, kPow };

// Sets z[i] = f(x[i], y[i]) for i < n. `z` may be `x` or `y`.
void ApplyElementary(Elementary2 f, const float* x, const float* y, float* z, int64_t n);
void ApplyElementary(Elementary2 f, const double* x, const double* y, double* z, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTARY_SIMD_H_
