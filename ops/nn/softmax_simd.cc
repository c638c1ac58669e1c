#include "gradflow/ops/nn/softmax_simd.h"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/nn/softmax_simd.cc"
#include "gradflow/ops/common/simd-inl.h"
// Included after simd-inl.h, which defines the vector types.
#include "gradflow/ops/common/exp_log-inl.h"

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

// Adds the vectors of doubles term(i) to the lanes.
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

// Sets the elements of `out` to the vectors fn(d, i), for i < n.
template <bool kNonTemporal, class F>
HWY_INLINE void SetFloats(int64_t n, float* out, const F& fn) {
  int64_t i = 0;
  if constexpr (kNonTemporal) {
    constexpr uintptr_t kLine = 64;
    for (; i < n && reinterpret_cast<uintptr_t>(out + i) % kLine != 0; ++i) {
      hn::StoreU(fn(One(), i), One(), out + i);
    }
  }
  for (; i + kFloats <= n; i += kFloats) {
    Put<Float, kNonTemporal>(Full(), fn(Full(), i), out + i);
  }
  for (; i < n; ++i) hn::StoreU(fn(One(), i), One(), out + i);
}
template <class F>
HWY_INLINE void SetFloats(int64_t n, bool non_temporal, float* out, const F& fn) {
  non_temporal ? SetFloats<true>(n, out, fn) : SetFloats<false>(n, out, fn);
}

}  // namespace

void MaxLanes(const float* x, int64_t n, float* lanes) {
  constexpr int64_t kVectors = kSumLanes / kFloats;
  // The number of independent maxima: a comparison has a long latency, and several can overlap.
  constexpr int64_t kSteps = 4;
  const Full d;
  V<Full> max[kSteps][kVectors];
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) {
    GRADFLOW_UNROLL
    for (int64_t s = 0; s < kSteps; ++s) max[s][v] = hn::LoadU(d, lanes + v * kFloats);
  }
  const auto greater = [](V<Full> a, V<Full> b) HWY_ATTR { return hn::IfThenElse(a > b, a, b); };
  const auto add = [&](int64_t i, int64_t s) HWY_ATTR {
    GRADFLOW_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      max[s][v] = greater(hn::LoadU(d, x + i + v * kFloats), max[s][v]);
    }
  };
  int64_t i = 0;
  for (; i + kSteps * kSumLanes <= n; i += kSteps * kSumLanes) {
    GRADFLOW_UNROLL
    for (int64_t s = 0; s < kSteps; ++s) add(i + s * kSumLanes, s);
  }
  for (; i + kSumLanes <= n; i += kSumLanes) add(i, 0);
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) {
    const V<Full> half = greater(max[1][v], max[0][v]);
    hn::StoreU(greater(greater(max[3][v], max[2][v]), half), d, lanes + v * kFloats);
  }
}

void SumLanes(const float* x, int64_t n, double* lanes) {
  AddTerms(n, lanes, [&](int64_t i) HWY_ATTR { return WideFloats(x + i); });
}

void ExponentialLanes(const float* x, float y, int64_t n, const float* const next[2], float* e,
                      double* lanes) {
  using WideFull = Wide<Full>;
  constexpr int64_t kFloatsOfLine = 16;
  constexpr int64_t kVectors = kSumLanes / kFloats;
  const Full d;
  const auto exponential = [&](const float* from)
                               HWY_ATTR { return Exp(d, hn::LoadU(d, from) - hn::Set(d, y)); };
  WideFull sums[kVectors];
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = WideFull::Load(lanes + v * kFloats);
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    GRADFLOW_UNROLL
    for (int64_t j = 0; j < kSumLanes; j += kFloatsOfLine) {
      hwy::Prefetch(next[0] + i + j);
      hwy::Prefetch(next[1] + i + j);
    }
    GRADFLOW_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      const V<Full> result = exponential(x + i + v * kFloats);
      hn::StoreU(result, d, e + i + v * kFloats);
      sums[v] = sums[v] + WideFull::Promote(d, result);
    }
  }
  GRADFLOW_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) sums[v].Store(lanes + v * kFloats);
  for (; i + kFloats <= n; i += kFloats) hn::StoreU(exponential(x + i), d, e + i);
  if (i == n) return;
  float rest[kFloats] = {};
  std::copy_n(x + i, n - i, rest);
  hn::StoreU(exponential(rest), d, rest);
  std::copy_n(rest, n - i, e + i);
}

void ProductLanes(const float* x, float y, const float* z, double c, int64_t n, double* lanes) {
  const FloatsOfDoubles d;
  AddTerms(n, lanes, [&](int64_t i) HWY_ATTR {
    const auto shifted = hn::PromoteTo(Doubles(), hn::LoadU(d, x + i) - hn::Set(d, y));
    return WideFloats(z + i) * (hn::Set(Doubles(), c) - shifted);
  });
}

void SubtractEach(const float* x, float y, int64_t n, float* out) {
  SetFloats<false>(n, out,
                   [&](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i) - hn::Set(d, y); });
}

void SubtractTwice(const float* x, float y, float z, int64_t n, bool non_temporal, float* out) {
  SetFloats(n, non_temporal, out, [&](auto d, int64_t i) HWY_ATTR {
    return hn::LoadU(d, x + i) - hn::Set(d, y) - hn::Set(d, z);
  });
}

void DivideEach(const float* x, float y, int64_t n, bool non_temporal, float* out) {
  SetFloats(n, non_temporal, out, [&](auto d, int64_t i) HWY_ATTR {
    return Quotient(hn::LoadU(d, x + i), hn::Set(d, y));
  });
}

void DivideAndSubtractEach(const float* x, float y, const float* z, int64_t n, bool non_temporal,
                           float* out) {
  SetFloats(n, non_temporal, out, [&](auto d, int64_t i) HWY_ATTR {
    return Quotient(hn::LoadU(d, x + i), hn::Set(d, y)) - hn::LoadU(d, z + i);
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
HWY_EXPORT(ExponentialLanes);
HWY_EXPORT(ProductLanes);
HWY_EXPORT(SubtractEach);
HWY_EXPORT(SubtractTwice);
HWY_EXPORT(DivideEach);
HWY_EXPORT(DivideAndSubtractEach);

}  // namespace

void MaxOfLanes(const float* x, int64_t n, float* lanes) {
  GRADFLOW_SIMD_DISPATCH(MaxLanes)(x, n, lanes);
}
void AddToLanes(const float* x, int64_t n, double* lanes) {
  GRADFLOW_SIMD_DISPATCH(SumLanes)(x, n, lanes);
}
void ExponentialsToLanes(const float* x, float y, int64_t n, const float* const next[2], float* e,
                         double* lanes) {
  GRADFLOW_SIMD_DISPATCH(ExponentialLanes)(x, y, n, next, e, lanes);
}
void AddProductsToLanes(const float* x, float y, const float* z, double c, int64_t n,
                        double* lanes) {
  GRADFLOW_SIMD_DISPATCH(ProductLanes)(x, y, z, c, n, lanes);
}
void SubtractFromFloats(const float* x, float y, int64_t n, float* out) {
  GRADFLOW_SIMD_DISPATCH(SubtractEach)(x, y, n, out);
}
void SubtractTwiceFromFloats(const float* x, float y, float z, int64_t n, bool non_temporal,
                             float* out) {
  GRADFLOW_SIMD_DISPATCH(SubtractTwice)(x, y, z, n, non_temporal, out);
}
void DivideFloats(const float* x, float y, int64_t n, bool non_temporal, float* out) {
  GRADFLOW_SIMD_DISPATCH(DivideEach)(x, y, n, non_temporal, out);
}
void DivideAndSubtractFloats(const float* x, float y, const float* z, int64_t n, bool non_temporal,
                             float* out) {
  GRADFLOW_SIMD_DISPATCH(DivideAndSubtractEach)(x, y, z, n, non_temporal, out);
}

}  // namespace gradflow
#endif  // HWY_ONCE
