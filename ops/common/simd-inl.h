// Highway, included once for each target, and the loops that files with SIMD kernels share. A file
// with SIMD kernels looks like this:
//
//   #include "gradflow/ops/foo_simd.h"       // plain functions over raw pointers
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "gradflow/ops/foo_simd.cc"
//   #include "gradflow/ops/common/simd-inl.h"       // includes foo_simd.cc again
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
// Do not use the standard library between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE. The linker
// keeps only one copy of an inline function, and that copy may be compiled for another processor.
//
// Results have the same bits on all targets: each operation rounds as in IEEE 754, products and
// sums are not fused, and the order of sums does not depend on the width of vectors.

#include <cstddef>
#include <cstdint>

#include "gradflow/ops/common/simd.h"

// Processors with SSE2 or SSSE3 but without SSE4 are not worth another copy of the kernels.
// AVX3_ZEN4 and AVX3_SPR add nothing to AVX3 that kernels use, and NEON_BF16 adds nothing to NEON.
// Vectors of unknown size (SVE) cannot be class members.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS                                                                  \
  (HWY_SSE2 | HWY_SSSE3 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_NEON_BF16 | HWY_SVE | HWY_SVE2 | \
   HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
// Every arm64 processor has NEON, so nothing is selected at run time. Run-time selection would add
// the crypto extension as a target attribute. Kernels do not use the extension, but gcc then cannot
// inline vectors into implicit constructors.
#if defined(__aarch64__) && !defined(TOOLCHAIN_MISS_SYS_AUXV_H)
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif

#include <hwy/detect_targets.h>
// Highway 1.0 does not have these targets.
#ifndef HWY_SSE2
#define HWY_SSE2 0
#define HWY_AVX3_ZEN4 0
#define HWY_AVX3_SPR 0
#define HWY_NEON_BF16 0
#endif

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#ifndef GRADFLOW_SIMD_DISPATCH
#define GRADFLOW_SIMD_DISPATCH(function) \
  (::gradflow::ApplySimdSwitch(), HWY_DYNAMIC_DISPATCH(function))
#endif

// Calls Function<Float>(...), Function<Half>(...) or Function<Bfloat16>(...) and returns from the
// enclosing void function.
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

// Unrolls a short loop over an array of vectors, whose length is known at compile time. Without
// this pragma, gcc -O2 keeps the loop and puts the vectors on the stack.
#ifndef GRADFLOW_UNROLL
#define GRADFLOW_UNROLL _Pragma("GCC unroll 16")
#endif

// An include guard that admits the file once for each target.
#if defined(GRADFLOW_OPS_COMMON_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_OPS_COMMON_SIMD_INL_H_
#undef GRADFLOW_OPS_COMMON_SIMD_INL_H_
#else
#define GRADFLOW_OPS_COMMON_SIMD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Loops process full vectors of floats, and the remaining elements as vectors of one float, with
// the same code.
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;
template <class D>
using V = hn::Vec<D>;

constexpr size_t kFull = hn::MaxLanes(Full());
static_assert(kSumLanes % kFull == 0, "a step of kSumLanes elements is a number of full vectors");

// ---- Element types in memory, loaded as float ----

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
  static HWY_INLINE void StoreNonTemporal(D d, V<D> v, float* p) {
    hn::Stream(v, d, p);
  }
};

// Selects between integers by a mask of floats.
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
HWY_INLINE void StoreNonTemporal16(D d, VU bits, uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  // A non-temporal store writes at least 16 bytes.
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
    // After the multiplication, infinities and NaN are 2^16 or larger.
    const auto exponent =
        hn::IfThenElseZero(value >= hn::Set(d, 0x1p16f), hn::BitCast(d, hn::Set(du, 0x7f800000u)));
    return hn::BitCast(d, hn::Or(sign, hn::Or(hn::BitCast(du, value), hn::BitCast(du, exponent))));
  }
  template <class D>
  static HWY_INLINE void Store(D d, V<D> v, uint16_t* p) {
    Store16(d, Round(d, v), p);
  }
  template <class D>
  static HWY_INLINE void StoreNonTemporal(D d, V<D> v, uint16_t* p) {
    StoreNonTemporal16(d, Round(d, v), p);
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
  static HWY_INLINE void StoreNonTemporal(D d, V<D> v, uint16_t* p) {
    StoreNonTemporal16(d, Round(d, v), p);
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

// Stores `v`. Uses a non-temporal store if kNonTemporal is true and `v` is a full vector.
template <class Io, bool kNonTemporal, class D>
HWY_INLINE void Put(D d, V<D> v, typename Io::Element* p) {
  if constexpr (kNonTemporal && hn::MaxLanes(D()) == kFull) {
    Io::StoreNonTemporal(d, v, p);
  } else {
    Io::Store(d, v, p);
  }
}

// ---- Sums in double: a vector of floats, promoted ----

template <class D, bool kOne = (hn::MaxLanes(D()) == 1)>
struct Wide;

#if HWY_TARGET != HWY_SCALAR
// A full vector of floats becomes two vectors of doubles: its lower and its upper half.
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

// Returns a / b as in IEEE 754, even if b is 0. Highway's emulation of vectors returns 0 for b = 0
// since version 1.2.
template <class Vector>
HWY_INLINE Vector Quotient(Vector a, Vector b) {
#if HWY_TARGET == HWY_EMU128
  for (size_t i = 0; i < hn::MaxLanes(hn::DFromV<Vector>()); ++i) a.raw[i] /= b.raw[i];
  return a;
#else
  return a / b;
#endif
}

// Rounds doubles to floats like a static_cast.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<float, D>> Narrowed([[maybe_unused]] D d, V<D> v) {
  const hn::Rebind<float, D> df;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway clamps to the largest float on these targets. Twice the largest float is infinity.
  const auto beyond = hn::Abs(v) >= hn::Set(d, 0x1.ffffffp127);
  const V<D> factor = hn::IfThenElse(beyond, hn::Set(d, 2.0), hn::Set(d, 1.0));
  return hn::DemoteTo(df, v) * hn::DemoteTo(df, factor);
#else
  return hn::DemoteTo(df, v);
#endif
}

// ---- Loops ----

// Calls fn(d, i) for each full vector of [0, n), then for each remaining element.
template <typename T = float, class F>
HWY_INLINE void ForEachVector(int64_t n, const F& fn) {
  const hn::ScalableTag<T> d;
  constexpr auto step = static_cast<int64_t>(hn::MaxLanes(d));
  int64_t i = 0;
  for (; i + step <= n; i += step) fn(d, i);
  for (; i < n; ++i) fn(hn::CappedTag<T, 1>(), i);
}

// Calls math.Run(d, i) for all i of [0, n).
template <class Math>
HWY_INLINE void ForEach(const Math& math, int64_t n) {
  const int64_t step = kFull;
  int64_t i = 0;
  for (; i + step <= n; i += step) math.Run(Full(), i);
  for (; i < n; ++i) math.Run(One(), i);
}

// ---- Sums of terms ----
//
// Conversion to double costs more than the rest of a sum. Terms are therefore first added in float,
// two or four at a time. This rounds once or twice, so the error of a sum is at most 2 * 2^-24 of
// the sum of magnitudes. The functions that compute terms multiply them by a weight, which is 1/2
// or 1/4 for groups of terms, so that their sum cannot overflow. The multiplication is exact except
// for terms below 2^-124, which may be off by 2^-148.
constexpr int64_t kFloatTerms = 4;
constexpr float kTermWeight = 0.25f;

// Returns the sum of four terms. `a` and `b` are sums of two terms, each multiplied by kTermWeight.
template <class D>
HWY_INLINE Wide<D> SumOfTerms(D d, V<D> a, V<D> b) {
  return Wide<D>::Promote(d, a + b) * Wide<D>::Set(kFloatTerms);
}

// Calls math.Run(d, i, weight, terms) for all i of [0, n). Run sets `terms` to kSums numbers for
// each element, multiplied by `weight`. The numbers are added to lanes[kSums][kSumLanes].
template <int kSums, class Math>
HWY_INLINE void ForEachTerm(const Math& math, int64_t n, double* lanes) {
  constexpr int64_t kStep = kFloatTerms * kSumLanes;
  const int64_t vectors_end = n / kStep * kStep;
  constexpr size_t kVectors = kSumLanes / kFull;
  Wide<Full> sums[kVectors][kSums];
  GRADFLOW_UNROLL
  for (size_t u = 0; u < kVectors; ++u) {
    GRADFLOW_UNROLL
    for (int s = 0; s < kSums; ++s) {
      sums[u][s] = Wide<Full>::Load(lanes + s * kSumLanes + u * kFull);
    }
  }
  for (int64_t i = 0; i < vectors_end; i += kStep) {
    GRADFLOW_UNROLL
    for (size_t u = 0; u < kVectors; ++u) {
      V<Full> terms[kFloatTerms][kSums];
      GRADFLOW_UNROLL
      for (int64_t t = 0; t < kFloatTerms; ++t) {
        math.Run(Full(), i + t * kSumLanes + static_cast<int64_t>(u * kFull), kTermWeight,
                 terms[t]);
      }
      GRADFLOW_UNROLL
      for (int s = 0; s < kSums; ++s) {
        sums[u][s] =
            sums[u][s] + SumOfTerms(Full(), terms[0][s] + terms[1][s], terms[2][s] + terms[3][s]);
      }
    }
  }
  GRADFLOW_UNROLL
  for (size_t u = 0; u < kVectors; ++u) {
    GRADFLOW_UNROLL
    for (int s = 0; s < kSums; ++s) sums[u][s].Store(lanes + s * kSumLanes + u * kFull);
  }
  for (int64_t i = vectors_end; i < n; ++i) {
    V<One> terms[kSums];
    math.Run(One(), i, 1.0f, terms);
    GRADFLOW_UNROLL
    for (int s = 0; s < kSums; ++s) {
      double* const lane = lanes + s * kSumLanes + i % kSumLanes;
      (Wide<One>::Load(lane) + Wide<One>::Promote(One(), terms[s])).Store(lane);
    }
  }
}

// Calls math.Run(d, i, j) for all elements i of rows that are `stride` elements apart; j is the
// column. Rows are read one after the other. This loads the columns' coefficients again for each
// row, but memory is fastest when it is read in order.
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

// The order of rows in loops with sums or non-temporal stores. Rows are processed in pairs: row r
// of [0, pairs) with row r + distance. The rows [pairs, distance) between them are processed one at
// a time. The distance is about half of the number of rows.
//
// The rows of a pair share the loads and stores of their columns' coefficients and sums. Each row
// of a pair is a separate sequential stream, which the processor's prefetchers follow. Pairs of
// adjacent rows would make the access pattern jump. The distance is odd so that the rows of a pair
// rarely lie at the same offset of a 4 KiB page, where they would compete for the same ways of the
// L1 cache.
struct RowPairs {
  int64_t pairs;
  int64_t distance;
};

HWY_INLINE RowPairs PairRows(int64_t rows) {
  constexpr int64_t kFewRows = 16;
  const int64_t half = rows - rows / 2;
  const int64_t distance = rows < kFewRows ? half : half | 1;
  return {rows - distance, distance};
}

// Runs math on kVectors vectors of kRows rows, from column j on. The rows are `distance` elements
// apart; the first row begins at element `begin`. Stores come last, because a load waits for a
// preceding store at the same offset of a 4 KiB page. Interleaved stores would therefore slow down
// rows of 4 KiB.
template <int kRows, int kVectors, int kSums, class D, class Math>
HWY_INLINE void AddTerms(D d, const Math& math, int64_t begin, int64_t distance, int64_t j,
                         double* const* sums) {
  constexpr int64_t kLanes = hn::MaxLanes(D());
  // Two terms are added in float, as in ForEachTerm.
  constexpr float kWeight = 1.0f / kRows;
  V<D> results[kRows][kVectors];
  V<D> totals[kVectors][kSums];
  GRADFLOW_UNROLL
  for (int64_t u = 0; u < kVectors; ++u) {
    const auto columns = math.Columns(d, j + u * kLanes);
    results[0][u] = math.Run(d, begin + j + u * kLanes, columns, kWeight, totals[u]);
    if constexpr (kRows == 2) {
      V<D> terms[kSums];
      results[1][u] = math.Run(d, begin + distance + j + u * kLanes, columns, kWeight, terms);
      GRADFLOW_UNROLL
      for (int s = 0; s < kSums; ++s) totals[u][s] = totals[u][s] + terms[s];
    }
  }
  GRADFLOW_UNROLL
  for (int64_t row = 0; row < kRows; ++row) {
    GRADFLOW_UNROLL
    for (int64_t u = 0; u < kVectors; ++u) {
      math.Store(d, results[row][u], begin + row * distance + j + u * kLanes);
    }
  }
  GRADFLOW_UNROLL
  for (int s = 0; s < kSums; ++s) {
    GRADFLOW_UNROLL
    for (int64_t u = 0; u < kVectors; ++u) {
      double* const sum = sums[s] + j + u * kLanes;
      Wide<D> total = Wide<D>::Promote(d, totals[u][s]);
      if constexpr (kRows != 1) total = total * Wide<D>::Set(kRows);
      (Wide<D>::Load(sum) + total).Store(sum);
    }
  }
}

template <int kRows, int kSums, class Math>
HWY_INLINE void AddRowTerms(const Math& math, int64_t begin, int64_t distance, int64_t columns,
                            int64_t next, double* const* sums) {
  // Processes one cache line of floats at a time, so that a non-temporal store fills it at once.
  constexpr int kLineVectors = kSumLanes / kFull;
  int64_t j = 0;
  for (; j + kSumLanes <= columns; j += kSumLanes) {
    if (next != 0) {
      for (int64_t row = 0; row < kRows; ++row) math.Prefetch(begin + row * distance + j + next);
    }
    AddTerms<kRows, kLineVectors, kSums>(Full(), math, begin, distance, j, sums);
  }
  for (; j < columns; ++j) AddTerms<kRows, 1, kSums>(One(), math, begin, distance, j, sums);
}

// Calls, for all elements of rows that are `stride` elements apart,
//   result = math.Run(d, i, math.Columns(d, j), weight, terms)
// and then math.Store(d, result, i). i is the element and j its column. Run sets `terms` to kSums
// numbers multiplied by `weight`, which are added to sums[s][j].
template <int kSums, class Math>
HWY_INLINE void ForEachRowTerm(const Math& math, int64_t rows, int64_t stride, int64_t columns,
                               double* const* sums) {
  const RowPairs pairs = PairRows(rows);
  // Hardware prefetchers follow contiguous memory, but cannot predict the next row of a tile.
  const int64_t next = stride == columns ? 0 : stride;
  for (int64_t row = 0; row < pairs.pairs; ++row) {
    AddRowTerms<2, kSums>(math, row * stride, pairs.distance * stride, columns, next, sums);
  }
  for (int64_t row = pairs.pairs; row < pairs.distance; ++row) {
    AddRowTerms<1, kSums>(math, row * stride, 0, columns, 0, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif  // the guard of each target
