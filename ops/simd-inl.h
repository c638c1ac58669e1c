// For the files with SIMD kernels: includes Highway, once for each target it compiles for, and
// holds what the kernels share. Such a file looks like this:
//
//   #include "gradflow/ops/foo_simd.h"       // plain functions over raw pointers
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "gradflow/ops/foo_simd.cc"
//   #include "gradflow/ops/simd-inl.h"       // this file, which includes foo_simd.cc again
//   HWY_BEFORE_NAMESPACE();
//   namespace gradflow::HWY_NAMESPACE {
//   void Foo(const float* x, int64_t n) { ... }
//   }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace gradflow {
//   HWY_EXPORT(Foo);
//   void Foo(const float* x, int64_t n) { GRADFLOW_SIMD_DISPATCH(Foo)(x, n); }
//   }
//   #endif
//
// Between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE there must be nothing of the standard
// library: the linker keeps one copy of an inline function, and it could be one for a processor
// that the program does not run on.
//
// Equal bits on all targets: every operation rounds as IEEE 754 says, products and sums are not
// fused, and the order of sums does not depend on the vectors' width.

#include <cstddef>
#include <cstdint>

#include "gradflow/ops/simd.h"

// SSSE3 without SSE4 is not worth a copy of the kernels, and vectors of unknown size cannot be
// members.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#ifndef GRADFLOW_SIMD_DISPATCH
#define GRADFLOW_SIMD_DISPATCH(function) \
  (::gradflow::ApplySimdSwitch(), HWY_DYNAMIC_DISPATCH(function))
#endif

// Returns from the enclosing void function after Function<Float>(...), or <Half>, or <Bfloat16>.
#ifndef GRADFLOW_SIMD_SWITCH
#define GRADFLOW_SIMD_SWITCH(type, Function, ...) \
  switch (type) {                                 \
    case ElementType::kFloat:                     \
      return Function<Float>(__VA_ARGS__);        \
    case ElementType::kHalf:                      \
      return Function<Half>(__VA_ARGS__);         \
    case ElementType::kBfloat16:                  \
      return Function<Bfloat16>(__VA_ARGS__);     \
  }
#endif

// A guard that holds once for each target.
#if defined(GRADFLOW_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_OPS_SIMD_INL_H_
#undef GRADFLOW_OPS_SIMD_INL_H_
#else
#define GRADFLOW_OPS_SIMD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Loops go through full vectors of floats and finish with vectors of one, by the same code.
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;
template <class D>
using V = hn::Vec<D>;

constexpr size_t kFull = hn::MaxLanes(Full());
static_assert(kSumLanes % kFull == 0, "a step of kSumLanes elements is a number of full vectors");

// ---- Elements in memory, as float in registers ----

template <class Io>
HWY_INLINE const typename Io::Element* Elements(const void* p) {
  return static_cast<const typename Io::Element*>(p);
}
template <class Io>
HWY_INLINE typename Io::Element* Elements(void* p) {
  return static_cast<typename Io::Element*>(p);
}

struct Float {
  using Element = float;
  template <class D>
  static HWY_INLINE V<D> Load(D d, const float* p) {
    return hn::LoadU(d, p);
  }
  template <class D>
  static HWY_INLINE void Store(D d, V<D> v, float* p) {
    hn::StoreU(v, d, p);
  }
};

// Selects by a mask of floats between integers, in the bits of floats.
template <class D, class M, class VU>
HWY_INLINE VU Select(D d, M mask, VU yes, VU no) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(du, hn::IfThenElse(mask, hn::BitCast(d, yes), hn::BitCast(d, no)));
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Load16(D, const uint16_t* p) {
  const hn::RebindToUnsigned<D> du;
  return hn::PromoteTo(du, hn::LoadU(hn::Rebind<uint16_t, D>(), p));
}
template <class D, class VU>
HWY_INLINE void Store16(D, VU bits, uint16_t* p) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, bits)), d16, p);
}

// The conversions of core/float16.h, bit for bit.
struct Half {
  using Element = uint16_t;
  template <class D>
  static HWY_INLINE V<D> Load(D d, const uint16_t* p) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = Load16(d, p);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
    const auto value = hn::BitCast(d, magnitude) * hn::Set(d, 0x1p112f);
    // Infinities and NaN have come out as 2^16 and above.
    const auto exponent =
        hn::IfThenElseZero(value >= hn::Set(d, 0x1p16f), hn::BitCast(d, hn::Set(du, 0x7f800000u)));
    return hn::BitCast(d, hn::Or(sign, hn::Or(hn::BitCast(du, value), hn::BitCast(du, exponent))));
  }
  template <class D>
  static HWY_INLINE void Store(D d, V<D> v, uint16_t* p) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const auto value = hn::BitCast(d, magnitude);
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
    const auto rounded = magnitude + odd + hn::Set(du, 0x0fffu);
    const auto normal = hn::ShiftRight<13>(rounded - hn::Set(du, 0x38000000u));
    const auto sum = hn::BitCast(du, value + hn::Set(d, 0.5f));
    const auto subnormal = sum - hn::Set(du, 0x3f000000u);
    auto half = Select(d, value < hn::Set(d, 0x1p-14f), subnormal, normal);
    // 65520 and above round to infinity.
    half = Select(d, value >= hn::Set(d, 65520.0f), hn::Set(du, 0x7c00u), half);
    half = Select(d, value == value, half, hn::Set(du, 0x7e00u));
    Store16(d, hn::Or(half, sign), p);
  }
};

struct Bfloat16 {
  using Element = uint16_t;
  template <class D>
  static HWY_INLINE V<D> Load(D d, const uint16_t* p) {
    return hn::BitCast(d, hn::ShiftLeft<16>(Load16(d, p)));
  }
  template <class D>
  static HWY_INLINE void Store(D d, V<D> v, uint16_t* p) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(du, 1u));
    const auto rounded = hn::ShiftRight<16>(bits + odd + hn::Set(du, 0x7fffu));
    Store16(d, Select(d, v == v, rounded, hn::Or(upper, hn::Set(du, 0x0040u))), p);
  }
};

// ---- Sums in double: a vector of floats, promoted ----

template <class D, bool kOne = (hn::MaxLanes(D()) == 1)>
struct Wide;

#if HWY_TARGET != HWY_SCALAR
// In a full vector's place there are two of double, with its lower and upper half.
template <class D>
struct Wide<D, false> {
  using DD = hn::Repartition<double, D>;
  static constexpr size_t kLanes = hn::MaxLanes(DD());
  V<DD> low;
  V<DD> high;

  static HWY_INLINE Wide Load(const double* p) {
    return {hn::LoadU(DD(), p), hn::LoadU(DD(), p + kLanes)};
  }
  HWY_INLINE void Store(double* p) const {
    hn::StoreU(low, DD(), p);
    hn::StoreU(high, DD(), p + kLanes);
  }
  static HWY_INLINE Wide Promote(D, V<D> v) {
    const hn::Rebind<float, DD> half;
    return {hn::PromoteTo(DD(), hn::LowerHalf(half, v)),
            hn::PromoteTo(DD(), hn::UpperHalf(half, v))};
  }
  HWY_INLINE Wide operator+(const Wide& b) const { return {low + b.low, high + b.high}; }
  HWY_INLINE Wide operator-(const Wide& b) const { return {low - b.low, high - b.high}; }
  HWY_INLINE Wide operator*(const Wide& b) const { return {low * b.low, high * b.high}; }
};
#endif

template <class D>
struct Wide<D, true> {
  using DD = hn::Rebind<double, D>;
  V<DD> v;

  static HWY_INLINE Wide Load(const double* p) { return {hn::LoadU(DD(), p)}; }
  HWY_INLINE void Store(double* p) const { hn::StoreU(v, DD(), p); }
  static HWY_INLINE Wide Promote(D, V<D> f) { return {hn::PromoteTo(DD(), f)}; }
  HWY_INLINE Wide operator+(const Wide& b) const { return {v + b.v}; }
  HWY_INLINE Wide operator-(const Wide& b) const { return {v - b.v}; }
  HWY_INLINE Wide operator*(const Wide& b) const { return {v * b.v}; }
};

// ---- Loops ----

// math.Run(d, i) for all of [0, n).
template <class Math>
HWY_INLINE void ForEach(const Math& math, int64_t n) {
  const int64_t step = kFull;
  int64_t i = 0;
  for (; i + step <= n; i += step) math.Run(Full(), i);
  for (; i < n; ++i) math.Run(One(), i);
}

// math.Run(d, i, sums) for all of [0, n), where `sums` are kSums numbers for each element to add
// to. They start from and end in lanes[kSums][kSumLanes].
template <int kSums, class Math>
HWY_INLINE void ForEachSum(const Math& math, int64_t n, double* lanes) {
  constexpr size_t kVectors = kSumLanes / kFull;
  Wide<Full> sums[kVectors][kSums];
  for (size_t u = 0; u < kVectors; ++u) {
    for (int s = 0; s < kSums; ++s) {
      sums[u][s] = Wide<Full>::Load(lanes + s * kSumLanes + u * kFull);
    }
  }
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (size_t u = 0; u < kVectors; ++u) {
      math.Run(Full(), i + static_cast<int64_t>(u * kFull), sums[u]);
    }
  }
  for (size_t u = 0; u < kVectors; ++u) {
    for (int s = 0; s < kSums; ++s) sums[u][s].Store(lanes + s * kSumLanes + u * kFull);
  }
  for (double* lane = lanes; i < n; ++i, ++lane) {
    Wide<One> one[kSums];
    for (int s = 0; s < kSums; ++s) one[s] = Wide<One>::Load(lane + s * kSumLanes);
    math.Run(One(), i, one);
    for (int s = 0; s < kSums; ++s) one[s].Store(lane + s * kSumLanes);
  }
}

// math.Run(d, i, j) for all elements i of rows that are `stride` elements apart, where j is the
// column. One row after the other: it costs loads of the columns' coefficients and sums, but memory
// streams in best when it is read in order.
template <class Math>
HWY_INLINE void ForEachRow(const Math& math, int64_t rows, int64_t stride, int64_t columns) {
  const int64_t step = kFull;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * stride;
    int64_t j = 0;
    for (; j + step <= columns; j += step) math.Run(Full(), begin + j, j);
    for (; j < columns; ++j) math.Run(One(), begin + j, j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif  // the guard of each target
