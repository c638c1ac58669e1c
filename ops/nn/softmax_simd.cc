#include "gradflow/ops/nn/softmax_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/nn/softmax_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

using Doubles = hn::ScalableTag<double>;
using FloatsOfDoubles = hn::Rebind<float, Doubles>;

constexpr auto kDoubles = static_cast<int64_t>(hn::MaxLanes(Doubles()));
constexpr int64_t kFloats = static_cast<int64_t>(kFull);

HWY_INLINE V<Doubles> WideFloats(const float* x) {
  return hn::PromoteTo(Doubles(), hn::LoadU(FloatsOfDoubles(), x));
}

// Adds term(i), a vector of doubles, to lanes.
template <class F>
HWY_INLINE void AddTerms(int64_t n, double* lanes, const F& term) {
  constexpr int64_t kVectors = kSumLanes / kDoubles;
  const Doubles d;
  V<Doubles> sums[kVectors];
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, lanes + v * kDoubles);
  for (int64_t i = 0; i + kSumLanes <= n; i += kSumLanes) {
    GRADFLOW_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) sums[v] = sums[v] + term(i + v * kDoubles);
  }
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, lanes + v * kDoubles);
}

// Calls fn(d, i) for vectors of floats from i on, i < n.
template <class F>
HWY_INLINE void ForFloats(int64_t n, const F& fn) {
  int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) fn(Full(), i);
  for (; i < n; ++i) fn(One(), i);
}

}  // namespace

void MaxLanes(const float* x, int64_t n, float* lanes) {
  constexpr int64_t kVectors = kSumLanes / kFloats;
  const Full d;
  V<Full> max[kVectors];
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) max[v] = hn::LoadU(d, lanes + v * kFloats);
  for (int64_t i = 0; i + kSumLanes <= n; i += kSumLanes) {
    GRADFLOW_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      const V<Full> element = hn::LoadU(d, x + i + v * kFloats);
      max[v] = hn::IfThenElse(element > max[v], element, max[v]);
    }
  }
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(max[v], d, lanes + v * kFloats);
}

void SumLanes(const float* x, int64_t n, double* lanes) {
  AddTerms(n, lanes, [&](int64_t i) HWY_ATTR { return WideFloats(x + i); });
}

void ProductLanes(const float* x, const float* y, double c, int64_t n, double* lanes) {
  AddTerms(n, lanes, [&](int64_t i) HWY_ATTR {
    return WideFloats(y + i) * (hn::Set(Doubles(), c) - WideFloats(x + i));
  });
}

void SubtractEach(const float* x, float y, int64_t n, float* out) {
  ForFloats(n, [&](auto d, int64_t i)
                   HWY_ATTR { hn::StoreU(hn::LoadU(d, x + i) - hn::Set(d, y), d, out + i); });
}

void DivideEach(float* x, float y, int64_t n) {
  ForFloats(n, [&](auto d, int64_t i)
                   HWY_ATTR { hn::StoreU(hn::LoadU(d, x + i) / hn::Set(d, y), d, x + i); });
}

void DivideAndSubtractEach(const float* x, float y, const float* z, int64_t n, float* out) {
  ForFloats(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::LoadU(d, x + i) / hn::Set(d, y) - hn::LoadU(d, z + i), d, out + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(MaxLanes);
HWY_EXPORT(SumLanes);
HWY_EXPORT(ProductLanes);
HWY_EXPORT(SubtractEach);
HWY_EXPORT(DivideEach);
HWY_EXPORT(DivideAndSubtractEach);

}  // namespace

void MaxOfLanes(const float* x, int64_t n, float* lanes) {
  GRADFLOW_SIMD_DISPATCH(MaxLanes)(x, n, lanes);
}
void AddToLanes(const float* x, int64_t n, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(SumLanes)(x, n, lanes);
}
void AddProductsToLanes(const float* x, const float* y, double c, int64_t n, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(ProductLanes)(x, y, c, n, lanes);
}
void SubtractFromFloats(const float* x, float y, int64_t n, float* out) {
  GRADFLOW_SIMD_DISPATCH(SubtractEach)(x, y, n, out);
}
void DivideFloats(float* x, float y, int64_t n) { GRADFLOW_SIMD_DISPATCH(DivideEach)(x, y, n); }
void DivideAndSubtractFloats(const float* x, float y, const float* z, int64_t n, float* out) {
  GRADFLOW_SIMD_DISPATCH(DivideAndSubtractEach)(x, y, z, n, out);
}

}  // namespace gradflow
#endif  // HWY_ONCE
