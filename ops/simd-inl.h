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

#include <hwy/cache_control.h>
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
  template <class D>
  static HWY_INLINE void Stream(D d, V<D> v, float* p) {
    hn::Stream(v, d, p);
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
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> Demote16(D, VU bits) {
  const hn::RebindToSigned<D> di;
  return hn::DemoteTo(hn::Rebind<uint16_t, D>(), hn::BitCast(di, bits));
}
template <class D, class VU>
HWY_INLINE void Store16(D d, VU bits, uint16_t* p) {
  hn::StoreU(Demote16(d, bits), hn::Rebind<uint16_t, D>(), p);
}
template <class D, class VU>
HWY_INLINE void Stream16(D d, VU bits, uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  // Streaming moves 16 bytes at least.
  if constexpr (hn::MaxLanes(d16) < 8) {
    hn::StoreU(Demote16(d, bits), d16, p);
  } else {
    hn::Stream(Demote16(d, bits), d16, p);
  }
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
    Store16(d, Round(d, v), p);
  }
  template <class D>
  static HWY_INLINE void Stream(D d, V<D> v, uint16_t* p) {
    Stream16(d, Round(d, v), p);
  }
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Round(D d, V<D> v) {
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
    return hn::Or(half, sign);
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
    Store16(d, Round(d, v), p);
  }
  template <class D>
  static HWY_INLINE void Stream(D d, V<D> v, uint16_t* p) {
    Stream16(d, Round(d, v), p);
  }
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Round(D d, V<D> v) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(du, 1u));
    const auto rounded = hn::ShiftRight<16>(bits + odd + hn::Set(du, 0x7fffu));
    return Select(d, v == v, rounded, hn::Or(upper, hn::Set(du, 0x0040u)));
  }
};

// Stores, past the caches if kStream (see StreamsTo in simd.h) and `v` is a full vector.
template <class Io, bool kStream, class D>
HWY_INLINE void Put(D d, V<D> v, typename Io::Element* p) {
  if constexpr (kStream && hn::MaxLanes(D()) == kFull) {
    Io::Stream(d, v, p);
  } else {
    Io::Store(d, v, p);
  }
}

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
  static HWY_INLINE Wide Set(double value) { return {hn::Set(DD(), value), hn::Set(DD(), value)}; }
  static HWY_INLINE Wide Promote(D, V<D> v) {
    const hn::Rebind<float, DD> half;
    return {hn::PromoteTo(DD(), hn::LowerHalf(half, v)),
            hn::PromoteTo(DD(), hn::UpperHalf(half, v))};
  }
  HWY_INLINE Wide operator+(const Wide& b) const { return {low + b.low, high + b.high}; }
  HWY_INLINE Wide operator*(const Wide& b) const { return {low * b.low, high * b.high}; }
};
#endif

template <class D>
struct Wide<D, true> {
  using DD = hn::Rebind<double, D>;
  V<DD> v;

  static HWY_INLINE Wide Load(const double* p) { return {hn::LoadU(DD(), p)}; }
  HWY_INLINE void Store(double* p) const { hn::StoreU(v, DD(), p); }
  static HWY_INLINE Wide Set(double value) { return {hn::Set(DD(), value)}; }
  static HWY_INLINE Wide Promote(D, V<D> f) { return {hn::PromoteTo(DD(), f)}; }
  HWY_INLINE Wide operator+(const Wide& b) const { return {v + b.v}; }
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

// Conversion to double costs more than the rest of a sum, so terms are first added in float, four
// at a time: with the two roundings of that, a sum is off by at most 2 * 2^-24 of the sum of
// magnitudes. They are divided by four before, which is exact (but for numbers below 2^-124, which
// may be off by 2^-148), so that terms of any size cannot overflow on the way.
constexpr int64_t kFloatTerms = 4;

template <class D>
HWY_INLINE Wide<D> SumOfTerms(D d, V<D> a, V<D> b, V<D> c, V<D> e) {
  const V<D> quarter = hn::Set(d, 0.25f);
  const V<D> sum = (a * quarter + b * quarter) + (c * quarter + e * quarter);
  return Wide<D>::Promote(d, sum) * Wide<D>::Set(4);
}

// math.Run(d, i, terms) for all of [0, n), where `terms` are kSums numbers for each element, which
// it sets: they are added to lanes[kSums][kSumLanes].
template <int kSums, class Math>
HWY_INLINE void ForEachTerm(const Math& math, int64_t n, double* lanes) {
  constexpr int64_t kStep = kFloatTerms * kSumLanes;
  const int64_t vectors_end = n / kStep * kStep;
  constexpr size_t kVectors = kSumLanes / kFull;
  Wide<Full> sums[kVectors][kSums];
  for (size_t u = 0; u < kVectors; ++u) {
    for (int s = 0; s < kSums; ++s) {
      sums[u][s] = Wide<Full>::Load(lanes + s * kSumLanes + u * kFull);
    }
  }
  for (int64_t i = 0; i < vectors_end; i += kStep) {
    for (size_t u = 0; u < kVectors; ++u) {
      V<Full> terms[kFloatTerms][kSums];
      for (int64_t t = 0; t < kFloatTerms; ++t) {
        math.Run(Full(), i + t * kSumLanes + static_cast<int64_t>(u * kFull), terms[t]);
      }
      for (int s = 0; s < kSums; ++s) {
        sums[u][s] =
            sums[u][s] + SumOfTerms(Full(), terms[0][s], terms[1][s], terms[2][s], terms[3][s]);
      }
    }
  }
  for (size_t u = 0; u < kVectors; ++u) {
    for (int s = 0; s < kSums; ++s) sums[u][s].Store(lanes + s * kSumLanes + u * kFull);
  }
  for (int64_t i = vectors_end; i < n; ++i) {
    V<One> terms[kSums];
    math.Run(One(), i, terms);
    for (int s = 0; s < kSums; ++s) {
      double* const lane = lanes + s * kSumLanes + i % kSumLanes;
      (Wide<One>::Load(lane) + Wide<One>::Promote(One(), terms[s])).Store(lane);
    }
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

// The terms of some rows from `begin` in the columns [j, j + Lanes(d)), added to the columns' sums.
template <int kRows, int kSums, class D, class Math>
HWY_INLINE void AddRowTerms(D d, const Math& math, int64_t begin, int64_t stride, int64_t j,
                            double* const* sums) {
  const auto columns = math.Columns(d, j);
  V<D> terms[kRows][kSums];
  for (int row = 0; row < kRows; ++row) {
    math.Run(d, begin + row * stride + j, columns, terms[row]);
  }
  for (int s = 0; s < kSums; ++s) {
    Wide<D> sum = Wide<D>::Load(sums[s] + j);
    if constexpr (kRows == kFloatTerms) {
      sum = sum + SumOfTerms(d, terms[0][s], terms[1][s], terms[2][s], terms[3][s]);
    } else {
      sum = sum + Wide<D>::Promote(d, terms[0][s]);
    }
    sum.Store(sums[s] + j);
  }
}

template <int kRows, int kSums, class Math>
HWY_INLINE void AddRowsTerms(const Math& math, int64_t begin, int64_t stride, int64_t columns,
                             double* const* sums) {
  const int64_t step = kFull;
  int64_t j = 0;
  for (; j + step <= columns; j += step) {
    AddRowTerms<kRows, kSums>(Full(), math, begin, stride, j, sums);
  }
  for (; j < columns; ++j) AddRowTerms<kRows, kSums>(One(), math, begin, stride, j, sums);
}

// Like ForEachRow with sums per column: math.Run(d, i, math.Columns(d, j), terms), where `terms`
// are kSums numbers, which it sets, to be added to sums[s][j]. Four rows at a time, which share
// the loads of columns' coefficients and sums.
template <int kSums, class Math>
HWY_INLINE void ForEachRowTerm(const Math& math, int64_t rows, int64_t stride, int64_t columns,
                               double* const* sums) {
  int64_t row = 0;
  for (; row + kFloatTerms <= rows; row += kFloatTerms) {
    AddRowsTerms<kFloatTerms, kSums>(math, row * stride, stride, columns, sums);
  }
  for (; row < rows; ++row) AddRowsTerms<1, kSums>(math, row * stride, stride, columns, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif  // the guard of each target
