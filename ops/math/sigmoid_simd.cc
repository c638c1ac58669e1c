#include "gradflow/ops/math/sigmoid_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/math/sigmoid_simd.cc"
#include "gradflow/ops/common/simd-inl.h"
// Included after simd-inl.h, which defines the vector types.
#include "gradflow/ops/common/exp_log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

void SigmoidOfFloats(const float* x, float* y, int64_t n) {
  ForEachVector<float>(n, [=](auto d, int64_t i)
                              HWY_ATTR { hn::StoreU(Sigmoid(d, hn::LoadU(d, x + i)), d, y + i); });
}

void NegatedMagnitudes(const double* x, double* y, int64_t n) {
  ForEachVector<double>(n, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Neg(hn::Abs(hn::LoadU(d, x + i))), d, y + i);
  });
}

// Sets y[i] to the sigmoid of x[i]. e[i] is the exponential of -|x[i]|.
void SigmoidOfExponentials(const double* x, const double* e, double* y, int64_t n) {
  ForEachVector<double>(n, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(SigmoidOfExponential(d, hn::LoadU(d, x + i), hn::LoadU(d, e + i)), d, y + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>

#include "gradflow/ops/common/elementary_simd.h"

namespace gradflow {

HWY_EXPORT(SigmoidOfFloats);
HWY_EXPORT(NegatedMagnitudes);
HWY_EXPORT(SigmoidOfExponentials);

void ApplySigmoid(const float* x, float* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(SigmoidOfFloats)(x, y, n);
}

void ApplySigmoid(const double* x, double* y, int64_t n) {
  constexpr int64_t kPart = 256;
  double e[kPart];
  for (int64_t i = 0; i < n; i += kPart) {
    const int64_t part = std::min(kPart, n - i);
    GRADFLOW_SIMD_DISPATCH(NegatedMagnitudes)(x + i, e, part);
    ApplyElementary(Elementary::kExp, e, e, part);
    GRADFLOW_SIMD_DISPATCH(SigmoidOfExponentials)(x + i, e, y + i, part);
  }
}

}  // namespace gradflow
#endif  // HWY_ONCE
