#include "gradflow/ops/nn/pool_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/nn/pool_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

struct Max {
  template <class D>
  static HWY_INLINE V<D> Initial(D d) {
    return hn::Inf(d) ^ hn::SignBit(d);
  }
  template <class D>
  static HWY_INLINE V<D> Combine(D, V<D> a, V<D> x) {
    return hn::IfThenElse(x > a, x, a);
  }
};
struct PoolSum {
  template <class D>
  static HWY_INLINE V<D> Initial(D d) {
    return hn::Zero(d);
  }
  template <class D>
  static HWY_INLINE V<D> Combine(D, V<D> a, V<D> x) {
    return a + x;
  }
};

// The distance of software prefetches, in floats. The processor's prefetchers stop at the end of a
// page.
constexpr int64_t kAhead = 512;

template <class Op>
HWY_INLINE void RowsOf(const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
                       float* out) {
  ForEachVector(n, [=](auto d, int64_t i) HWY_ATTR {
    auto a = first ? Op::Initial(d) : hn::LoadU(d, out + i);
    for (int64_t r = 0; r < rows; ++r) {
      hwy::Prefetch(x + r * stride + i + kAhead);
      a = Op::Combine(d, a, hn::LoadU(d, x + r * stride + i));
    }
    hn::StoreU(a, d, out + i);
  });
}

// kRows is the number of rows as a constant, or 0 to use `rows`. Combines the rows of a column
// first.
template <class Op, int kRows, bool kNonTemporal>
HWY_INLINE void WindowsOf(const float* x, int64_t stride, int64_t rows, const PoolRange* windows,
                          int64_t pixels, int64_t depth, int64_t count, float* y) {
  const int64_t num_rows = kRows > 0 ? kRows : rows;
  for (int64_t o = 0; o < pixels; ++o, y += depth) {
    const int64_t begin = windows[o].begin;
    const int64_t end = windows[o].end;
    const auto divisor = static_cast<float>(count * (end - begin));
    ForEachVector(depth, [=](auto d, int64_t i) HWY_ATTR {
      auto a = Op::Initial(d);
      for (int64_t c = begin; c < end; ++c) {
        auto column = Op::Initial(d);
        GRADFLOW_UNROLL
        for (int64_t r = 0; r < num_rows; ++r) {
          const float* const from = x + r * stride + c * depth + i;
          hwy::Prefetch(from + kAhead);
          column = Op::Combine(d, column, hn::LoadU(d, from));
        }
        a = Op::Combine(d, a, column);
      }
      if (count > 0) a = a / hn::Set(d, divisor);
      Put<Float, kNonTemporal>(d, a, y + i);
    });
  }
}

// Combines windows of one row. The row is usually in a cache already, so a prefetch would only cost
// time.
template <class Op, bool kNonTemporal>
HWY_INLINE void PixelsOf(const float* x, const PoolRange* windows, int64_t pixels, int64_t depth,
                         int64_t count, float* y) {
  for (int64_t o = 0; o < pixels; ++o, y += depth) {
    const int64_t begin = windows[o].begin;
    const int64_t end = windows[o].end;
    const auto divisor = static_cast<float>(count * (end - begin));
    ForEachVector(depth, [&](auto d, int64_t i) HWY_ATTR {
      auto a = Op::Initial(d);
      for (int64_t c = begin; c < end; ++c) a = Op::Combine(d, a, hn::LoadU(d, x + c * depth + i));
      if (count > 0) a = a / hn::Set(d, divisor);
      Put<Float, kNonTemporal>(d, a, y + i);
    });
  }
}

template <class Op, int kRows>
HWY_INLINE void SomeRowsOf(const float* x, int64_t stride, int64_t rows, const PoolRange* windows,
                           int64_t pixels, int64_t depth, int64_t count, bool non_temporal,
                           float* y) {
  if (non_temporal) {
    return WindowsOf<Op, kRows, true>(x, stride, rows, windows, pixels, depth, count, y);
  }
  WindowsOf<Op, kRows, false>(x, stride, rows, windows, pixels, depth, count, y);
}

template <class Op>
HWY_INLINE void AnyWindowsOf(const float* x, int64_t stride, int64_t rows, const PoolRange* windows,
                             int64_t pixels, int64_t depth, int64_t count, bool non_temporal,
                             float* y) {
  if (rows == 1) {
    return non_temporal ? PixelsOf<Op, true>(x, windows, pixels, depth, count, y)
                        : PixelsOf<Op, false>(x, windows, pixels, depth, count, y);
  }
  if (rows == 2) {
    return SomeRowsOf<Op, 2>(x, stride, rows, windows, pixels, depth, count, non_temporal, y);
  }
  if (rows == 3) {
    return SomeRowsOf<Op, 3>(x, stride, rows, windows, pixels, depth, count, non_temporal, y);
  }
  SomeRowsOf<Op, 0>(x, stride, rows, windows, pixels, depth, count, non_temporal, y);
}

template <bool kNonTemporal>
HWY_INLINE void GradientsAtMaxima(const float* dy, const int32_t* positions, int64_t stride,
                                  int64_t rows, const PoolRange* windows, int64_t pixels,
                                  int64_t depth, int32_t first, bool add, float* dx) {
  for (int64_t c = 0; c < pixels; ++c, dx += depth) {
    const int64_t begin = windows[c].begin;
    const int64_t end = windows[c].end;
    ForEachVector(depth, [&](auto d, int64_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> di;
      const auto position = hn::Set(di, first + static_cast<int32_t>(c));
      auto sum = add ? hn::LoadU(d, dx + i) : hn::Zero(d);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t o = begin; o < end; ++o) {
          const int64_t from = r * stride + o * depth + i;
          const auto here = hn::LoadU(di, positions + from) == position;
          sum = sum + hn::IfThenElseZero(hn::RebindMask(d, here), hn::LoadU(d, dy + from));
        }
      }
      Put<Float, kNonTemporal>(d, sum, dx + i);
    });
  }
}

}  // namespace

void PoolRows(PoolKind kind, const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
              float* out) {
  if (kind == PoolKind::kMax) return RowsOf<Max>(x, stride, rows, first, n, out);
  RowsOf<PoolSum>(x, stride, rows, first, n, out);
}

void PoolWindows(PoolKind kind, const float* x, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int64_t count,
                 bool non_temporal, float* y) {
  if (kind == PoolKind::kMax) {
    return AnyWindowsOf<Max>(x, stride, rows, windows, pixels, depth, 0, non_temporal, y);
  }
  if (kind == PoolKind::kSum) count = 0;
  AnyWindowsOf<PoolSum>(x, stride, rows, windows, pixels, depth, count, non_temporal, y);
}

void MergeMaxima(const float* x, int64_t stride, int64_t rows, const PoolRange* windows,
                 int64_t pixels, int64_t depth, int32_t first, int32_t row_positions, bool merge,
                 float* maxima, int32_t* positions) {
  for (int64_t o = 0; o < pixels; ++o, maxima += depth, positions += depth) {
    const int64_t begin = windows[o].begin;
    const int64_t end = windows[o].end;
    ForEachVector(depth, [&](auto d, int64_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> di;
      auto max = Max::Initial(d);
      auto position = hn::Set(di, -1);
      if (merge) {
        max = hn::LoadU(d, maxima + i);
        position = hn::LoadU(di, positions + i);
      } else if (rows > 0 && begin < end) {
        max = hn::LoadU(d, x + begin * depth + i);
        position = hn::Set(di, first + static_cast<int32_t>(begin));
      }
      for (int64_t r = 0; r < rows; ++r) {
        const int32_t row_first = first + static_cast<int32_t>(r) * row_positions;
        for (int64_t c = begin; c < end; ++c) {
          const float* const from = x + r * stride + c * depth + i;
          hwy::Prefetch(from + kAhead);
          const auto value = hn::LoadU(d, from);
          const auto is_new = value > max;
          max = hn::IfThenElse(is_new, value, max);
          position = hn::IfThenElse(hn::RebindMask(di, is_new),
                                    hn::Set(di, row_first + static_cast<int32_t>(c)), position);
        }
      }
      hn::StoreU(max, d, maxima + i);
      hn::StoreU(position, di, positions + i);
    });
  }
}

void AddToMaxima(const float* dy, const int32_t* positions, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int32_t first, bool add,
                 bool non_temporal, float* dx) {
  if (non_temporal) {
    return GradientsAtMaxima<true>(dy, positions, stride, rows, windows, pixels, depth, first, add,
                                   dx);
  }
  GradientsAtMaxima<false>(dy, positions, stride, rows, windows, pixels, depth, first, add, dx);
}

void AddWeighted(const float* x, float weight, int64_t n, float* out) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto product = hn::LoadU(d, x + i) * hn::Set(d, weight);
    hn::StoreU(hn::LoadU(d, out + i) + product, d, out + i);
  });
}

void ScalePixels(const float* weights, int64_t pixels, int64_t depth, float* x) {
  for (int64_t o = 0; o < pixels; ++o, x += depth) {
    ForEachVector(depth, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::LoadU(d, x + i) * hn::Set(d, weights[o]), d, x + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(PoolRows);
HWY_EXPORT(PoolWindows);
HWY_EXPORT(MergeMaxima);
HWY_EXPORT(AddToMaxima);
HWY_EXPORT(AddWeighted);
HWY_EXPORT(ScalePixels);

}  // namespace

void PoolRows(PoolKind kind, const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
              float* out) {
  GRADFLOW_SIMD_DISPATCH(PoolRows)(kind, x, stride, rows, first, n, out);
}
void PoolWindows(PoolKind kind, const float* x, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int64_t count,
                 bool non_temporal, float* y) {
  GRADFLOW_SIMD_DISPATCH(PoolWindows)
  (kind, x, stride, rows, windows, pixels, depth, count, non_temporal, y);
}
void MergeMaxima(const float* x, int64_t stride, int64_t rows, const PoolRange* windows,
                 int64_t pixels, int64_t depth, int32_t first, int32_t row_positions, bool merge,
                 float* maxima, int32_t* positions) {
  GRADFLOW_SIMD_DISPATCH(MergeMaxima)
  (x, stride, rows, windows, pixels, depth, first, row_positions, merge, maxima, positions);
}
void AddToMaxima(const float* dy, const int32_t* positions, int64_t stride, int64_t rows,
                 const PoolRange* windows, int64_t pixels, int64_t depth, int32_t first, bool add,
                 bool non_temporal, float* dx) {
  GRADFLOW_SIMD_DISPATCH(AddToMaxima)
  (dy, positions, stride, rows, windows, pixels, depth, first, add, non_temporal, dx);
}
void AddWeighted(const float* x, float weight, int64_t n, float* out) {
  GRADFLOW_SIMD_DISPATCH(AddWeighted)(x, weight, n, out);
}
void ScalePixels(const float* weights, int64_t pixels, int64_t depth, float* x) {
  GRADFLOW_SIMD_DISPATCH(ScalePixels)(weights, pixels, depth, x);
}

}  // namespace gradflow
#endif  // HWY_ONCE
