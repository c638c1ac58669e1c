#include "gradflow/ops/nn/activation_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/nn/activation_simd.cc"
#include "gradflow/ops/common/simd-inl.h"
// Included after simd-inl.h, which defines the vector types.
#include "gradflow/ops/common/exp_log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

struct EluMath {
  float positive;
  float negative;
  const float* x;
  float* y;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const auto v = hn::LoadU(d, x + i);
    hn::StoreU(hn::IfThenElse(v < hn::Zero(d), hn::Set(d, negative) * Expm1(d, v),
                              hn::Set(d, positive) * v),
               d, y + i);
  }
};

template <class D>
HWY_INLINE V<D> ExpOfNegativeAbs(D d, V<D> v) {
  return Exp(d, hn::Neg(hn::Abs(v)));
}

struct SoftplusMath {
  const float* x;
  float* y;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    const auto v = hn::LoadU(d, x + i);
    const auto positive = hn::IfThenElseZero(v > hn::Zero(d), v);
    hn::StoreU(positive + Log1p(d, ExpOfNegativeAbs(d, v)), d, y + i);
  }
};

struct SoftplusGradMath {
  const float* dy;
  const float* x;
  float* y;
  template <class D>
  HWY_INLINE void Run(D d, int64_t i) const {
    hn::StoreU(hn::LoadU(d, dy + i) * Sigmoid(d, hn::LoadU(d, x + i)), d, y + i);
  }
};

void EluLoop(float positive, float negative, const float* x, float* y, int64_t n) {
  ForEach(EluMath{positive, negative, x, y}, n);
}
void SoftplusLoop(const float* x, float* y, int64_t n) { ForEach(SoftplusMath{x, y}, n); }
void SoftplusGradLoop(const float* dy, const float* x, float* y, int64_t n) {
  ForEach(SoftplusGradMath{dy, x, y}, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(EluLoop);
HWY_EXPORT(SoftplusLoop);
HWY_EXPORT(SoftplusGradLoop);

void ApplyElu(float positive, float negative, const float* x, float* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(EluLoop)(positive, negative, x, y, n);
}
void ApplySoftplus(const float* x, float* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(SoftplusLoop)(x, y, n);
}
void ApplySoftplusGrad(const float* dy, const float* x, float* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(SoftplusGradLoop)(dy, x, y, n);
}

}  // namespace gradflow
#endif  // HWY_ONCE
