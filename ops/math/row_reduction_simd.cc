#include "gradflow/ops/math/row_reduction_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/math/row_reduction_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

using Doubles = hn::ScalableTag<double>;
using OneDouble = hn::CappedTag<double, 1>;

// The prefetch distance in bytes. Hardware prefetchers stop at the end of a page.
constexpr int64_t kAheadBytes = 4096;
// The number of rows that stay in the L1 cache between passes over some of their columns.
constexpr int64_t kRowsPerPass = 32;

template <class D>
HWY_INLINE V<D> Widened(D d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), x));
}

// The operations that accumulate rows: the vector types of accumulators, and how to add an element.
struct SumOf {
  using Many = Doubles;
  using One = OneDouble;
  template <class D>
  static HWY_INLINE V<D> Accumulate(D d, const float* x, V<D> sum) {
    return sum + Widened(d, x);
  }
};
// NaN replaces any accumulator, and only NaN replaces NaN.
template <bool kMax>
struct ExtremumOf {
  using Many = hn::ScalableTag<float>;
  using One = hn::CappedTag<float, 1>;
  template <class D>
  static HWY_INLINE V<D> Accumulate(D d, const float* x, V<D> extremum) {
    const V<D> v = hn::LoadU(d, x);
    const auto is_beyond = kMax ? v > extremum : v < extremum;
    return hn::IfThenElse(v == v, hn::IfThenElse(is_beyond, v, extremum), v);
  }
};

// Reduces the columns [j, j + kVectors vectors). Accumulators stay in registers for all rows.
template <class Op, int kVectors, class D>
HWY_INLINE void ReduceColumns(D d, const float* x, int64_t rows, int64_t row_stride,
                              hn::TFromD<D>* to) {
  const size_t lanes = hn::Lanes(d);
  V<D> a[kVectors];
  GRADFLOW_UNROLL
  for (int v = 0; v < kVectors; ++v) a[v] = hn::LoadU(d, to + v * lanes);
  for (int64_t r = 0; r < rows; ++r, x += row_stride) {
    GRADFLOW_UNROLL
    for (int v = 0; v < kVectors; ++v) a[v] = Op::Accumulate(d, x + v * lanes, a[v]);
  }
  GRADFLOW_UNROLL
  for (int v = 0; v < kVectors; ++v) hn::StoreU(a[v], d, to + v * lanes);
}

// Reduces contiguous rows with few columns. Accumulators stay in registers.
template <class Op, typename T>
HWY_INLINE void ReduceNarrowRows(const float* x, int64_t rows, int64_t row_stride, int64_t n,
                                 T* to) {
  const typename Op::Many d;
  const typename Op::One one;
  // 64 columns with AVX-512.
  constexpr int kVectors = 64 / (64 / sizeof(T));
  const auto wide = static_cast<int64_t>(kVectors * hn::Lanes(d));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  while (rows > 0) {
    const int64_t some = rows < kRowsPerPass ? rows : kRowsPerPass;
    // One load brings a cache line. The elements after the last rows are often reduced next.
    // Prefetches beyond the input have no effect.
    const auto* next = reinterpret_cast<const char*>(x + some * row_stride);
    const int64_t bytes = some * row_stride * static_cast<int64_t>(sizeof(float));
    for (int64_t at = 0; at < bytes && at < kAheadBytes; at += 64) hwy::Prefetch(next + at);
    int64_t j = 0;
    for (; j + wide <= n; j += wide) {
      ReduceColumns<Op, kVectors>(d, x + j, some, row_stride, to + j);
    }
    for (; j + lanes <= n; j += lanes) ReduceColumns<Op, 1>(d, x + j, some, row_stride, to + j);
    for (; j < n; ++j) ReduceColumns<Op, 1>(one, x + j, some, row_stride, to + j);
    rows -= some;
    x += some * row_stride;
  }
}

template <class Op, int kRows, class D>
HWY_INLINE void AccumulateRows(D d, const float* x, int64_t row_stride, hn::TFromD<D>* to) {
  V<D> a = hn::LoadU(d, to);
  GRADFLOW_UNROLL
  for (int r = 0; r < kRows; ++r) a = Op::Accumulate(d, x + r * row_stride, a);
  hn::StoreU(a, d, to);
}

// Reduces several rows at a time, so that accumulators are loaded and stored once for them.
template <class Op, int kRows, typename T>
HWY_INLINE void ReduceSomeRows(const float* x, int64_t row_stride, int64_t n, bool fetch, T* to) {
  const typename Op::Many d;
  const typename Op::One one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    if (fetch && j % 16 == 0) {
      GRADFLOW_UNROLL
      for (int r = 0; r < kRows; ++r) hwy::Prefetch(x + (kRows + r) * row_stride + j);
    }
    AccumulateRows<Op, kRows>(d, x + j, row_stride, to + j);
  }
  for (; j < n; ++j) AccumulateRows<Op, kRows>(one, x + j, row_stride, to + j);
}

template <class Op, typename T>
HWY_INLINE void ReduceRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, T* to) {
  constexpr int64_t kNarrow = 64;
  if (n <= kNarrow) return ReduceNarrowRows<Op>(x, rows, row_stride, n, to);
  constexpr int kRows = 8;
  for (; rows >= kRows; rows -= kRows, x += kRows * row_stride) {
    ReduceSomeRows<Op, kRows>(x, row_stride, n, rows >= 2 * kRows, to);
  }
  for (; rows > 0; --rows, x += row_stride) ReduceSomeRows<Op, 1>(x, row_stride, n, false, to);
}

void SumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, double* sums) {
  ReduceRows<SumOf>(x, rows, row_stride, n, sums);
}
void MaxRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* maxima) {
  ReduceRows<ExtremumOf<true>>(x, rows, row_stride, n, maxima);
}
void MinRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* minima) {
  ReduceRows<ExtremumOf<false>>(x, rows, row_stride, n, minima);
}

// Scans kRows rows of 16 columns, a cache line of floats, or of a single column if D has one lane.
template <bool kExclusive, bool kStreams, int kRows, class D>
HWY_INLINE void ScanSums(D d, const float* x, int64_t row_stride, double* sums, float* out) {
  constexpr int kVectors = hn::MaxLanes(D()) == 1 ? 1 : 16 / hn::MaxLanes(D());
  const hn::Rebind<float, D> df;
  constexpr size_t kLanes = hn::MaxLanes(D());
  V<D> sum[kVectors];
  GRADFLOW_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(d, sums + v * kLanes);
  GRADFLOW_UNROLL
  for (int r = 0; r < kRows; ++r) {
    GRADFLOW_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto next = sum[v] + Widened(d, x + r * row_stride + v * kLanes);
      const auto result = Narrowed(d, kExclusive ? sum[v] : next);
      float* const to = out + r * row_stride + v * kLanes;
      if constexpr (kStreams && hn::MaxLanes(D()) >= 4) {
        hn::Stream(result, df, to);
      } else {
        hn::StoreU(result, df, to);
      }
      sum[v] = next;
    }
  }
  GRADFLOW_UNROLL
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, sums + v * kLanes);
}

template <bool kExclusive, bool kStreams, int kRows>
HWY_INLINE void ScanSumOfRows(const float* x, int64_t row_stride, int64_t n, double* sums,
                              float* out) {
  // The number of rows to prefetch ahead, because the rows of a tile are far apart. Prefetches
  // beyond the last row have no effect.
  constexpr int64_t kAhead = 8;
  int64_t j = 0;
  if constexpr (hn::MaxLanes(Doubles()) > 1) {
    for (; j + 16 <= n; j += 16) {
      GRADFLOW_UNROLL
      for (int r = 0; r < kRows; ++r) hwy::Prefetch(x + (kAhead + r) * row_stride + j);
      ScanSums<kExclusive, kStreams, kRows>(Doubles(), x + j, row_stride, sums + j, out + j);
    }
  }
  for (; j < n; ++j) {
    ScanSums<kExclusive, false, kRows>(OneDouble(), x + j, row_stride, sums + j, out + j);
  }
}

template <bool kExclusive, bool kStreams>
HWY_INLINE void ScanSumRowsOf(const float* x, int64_t rows, int64_t row_stride, int64_t n,
                              double* sums, float* out) {
  constexpr int kRows = 2;
  for (; rows >= kRows; rows -= kRows, x += kRows * row_stride, out += kRows * row_stride) {
    ScanSumOfRows<kExclusive, kStreams, kRows>(x, row_stride, n, sums, out);
  }
  if (rows > 0) ScanSumOfRows<kExclusive, kStreams, 1>(x, row_stride, n, sums, out);
}

void ScanSumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, bool exclusive,
                 bool non_temporal, double* sums, float* out) {
  if (exclusive) {
    non_temporal ? ScanSumRowsOf<true, true>(x, rows, row_stride, n, sums, out)
                 : ScanSumRowsOf<true, false>(x, rows, row_stride, n, sums, out);
  } else {
    non_temporal ? ScanSumRowsOf<false, true>(x, rows, row_stride, n, sums, out)
                 : ScanSumRowsOf<false, false>(x, rows, row_stride, n, sums, out);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
HWY_EXPORT(SumRows);
HWY_EXPORT(MaxRows);
HWY_EXPORT(MinRows);
HWY_EXPORT(ScanSumRows);
void SumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, double* sums) {
  GRADFLOW_SIMD_DISPATCH(SumRows)(x, rows, row_stride, n, sums);
}
void MaxRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* maxima) {
  GRADFLOW_SIMD_DISPATCH(MaxRows)(x, rows, row_stride, n, maxima);
}
void MinRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, float* minima) {
  GRADFLOW_SIMD_DISPATCH(MinRows)(x, rows, row_stride, n, minima);
}
void ScanSumRows(const float* x, int64_t rows, int64_t row_stride, int64_t n, bool exclusive,
                 bool non_temporal, double* sums, float* out) {
  GRADFLOW_SIMD_DISPATCH(ScanSumRows)(x, rows, row_stride, n, exclusive, non_temporal, sums, out);
}
}  // namespace gradflow
#endif
