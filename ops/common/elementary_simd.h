// Elementary functions over contiguous elements: the same bits on every processor, whatever its
// vectors, and wherever in an array an element is. Exp, Expm1, Log and Log1p of floats are computed
// by exp_log-inl.h, the others by SLEEF's deterministic functions. Only Lgamma of negative numbers
// may have other bits on other processors: the C library computes it.
//
// Results are within 1 unit in the last place (ulp) of the exact ones; Expm1 and Log1p of floats
// within 1.1; Erf, Erfc and Lgamma within 2, Cosh and Sinh too near their overflow. Lgamma of
// negative doubles is within 5. Results near and below the smallest normal number may be off by
// another ulp.
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

// Set y[i] = f(x[i]) for i < n. `y` may be `x`.
void ApplyElementary(Elementary f, const float* x, float* y, int64_t n);
void ApplyElementary(Elementary f, const double* x, double* y, int64_t n);

// kAtan2 is the angle of the point (y, x); kPow is x to the power of y.
enum class Elementary2 { kAtan2, kPow };

// Set z[i] = f(x[i], y[i]) for i < n. `z` may be `x` or `y`.
void ApplyElementary(Elementary2 f, const float* x, const float* y, float* z, int64_t n);
void ApplyElementary(Elementary2 f, const double* x, const double* y, double* z, int64_t n);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTARY_SIMD_H_
