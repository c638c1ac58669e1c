#include "gradflow/ops/math/sigmoid_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/math/sigmoid_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// Calls fn(d, i) for vectors from element i on, and for single elements at the end.
template <typename T, class F>
HWY_INLINE void ForEachVector(int64_t n, const F& fn) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) fn(d, i);
  for (; i < n; ++i) fn(hn::CappedTag<T, 1>(), i);
}

template <typename T>
HWY_INLINE void Negate(const T* x, T* y, int64_t n) {
  ForEachVector<T>(n, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Neg(hn::Abs(hn::LoadU(d, x + i))), d, y + i);
  });
}

// Two forms of 1 / (1 + e^-x). Each is used where its exponential is at most 1, which avoids
// overflow and preserves the precision of small results.
template <typename T>
HWY_INLINE void Combine(const T* x, const T* e, T* y, int64_t n) {
  ForEachVector<T>(n, [=](auto d, int64_t i) HWY_ATTR {
    const auto one = hn::Set(d, T(1));
    const auto exponential = hn::LoadU(d, e + i);
    const auto is_positive = hn::Ge(hn::LoadU(d, x + i), hn::Zero(d));
    const auto numerator = hn::IfThenElse(is_positive, one, exponential);
    hn::StoreU(hn::Div(numerator, hn::Add(one, exponential)), d, y + i);
  });
}

void NegateFloats(const float* x, float* y, int64_t n) { Negate(x, y, n); }
void NegateDoubles(const double* x, double* y, int64_t n) { Negate(x, y, n); }
void CombineFloats(const float* x, const float* e, float* y, int64_t n) { Combine(x, e, y, n); }
void CombineDoubles(const double* x, const double* e, double* y, int64_t n) { Combine(x, e, y, n); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(NegateFloats);
HWY_EXPORT(NegateDoubles);
HWY_EXPORT(CombineFloats);
HWY_EXPORT(CombineDoubles);

void NegatedMagnitudes(const float* x, float* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(NegateFloats)(x, y, n);
}
void NegatedMagnitudes(const double* x, double* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(NegateDoubles)(x, y, n);
}
void SigmoidOfExponential(const float* x, const float* e, float* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(CombineFloats)(x, e, y, n);
}
void SigmoidOfExponential(const double* x, const double* e, double* y, int64_t n) {
  GRADFLOW_SIMD_DISPATCH(CombineDoubles)(x, e, y, n);
}

}  // namespace gradflow
#endif  // HWY_ONCE
