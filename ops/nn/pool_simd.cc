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
struct Sum {
  template <class D>
  static HWY_INLINE V<D> Initial(D d) {
    return hn::Zero(d);
  }
  template <class D>
  static HWY_INLINE V<D> Combine(D, V<D> a, V<D> x) {
    return a + x;
  }
};

// Calls fn(d, i) for vectors of floats from i on, i < n.
template <class F>
HWY_INLINE void ForVectors(int64_t n, const F& fn) {
  constexpr auto lanes = static_cast<int64_t>(kFull);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) fn(Full(), i);
  for (; i < n; ++i) fn(One(), i);
}

// Elements that are fetched ahead of their use: processors fetch up to the end of a page.
constexpr int64_t kAhead = 512;

// kRows is the number of rows, or 0 for `rows`.
template <class Op, int kRows>
HWY_INLINE void RowsOf(const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
                       float* out) {
  const int64_t count = kRows > 0 ? kRows : rows;
  ForVectors(n, [=](auto d, int64_t i) HWY_ATTR {
    auto a = first ? Op::Initial(d) : hn::LoadU(d, out + i);
    GRADFLOW_UNROLL
    for (int64_t r = 0; r < count; ++r) {
      hwy::Prefetch(x + r * stride + i + kAhead);
      a = Op::Combine(d, a, hn::LoadU(d, x + r * stride + i));
    }
    hn::StoreU(a, d, out + i);
  });
}

template <class Op>
HWY_INLINE void SomeRowsOf(const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
                           float* out) {
  if (rows == 2 && first) return RowsOf<Op, 2>(x, stride, rows, true, n, out);
  if (rows == 3 && first) return RowsOf<Op, 3>(x, stride, rows, true, n, out);
  RowsOf<Op, 0>(x, stride, rows, first, n, out);
}

template <class Op>
HWY_INLINE void PixelsOf(const float* x, const PoolRange* windows, int64_t pixels, int64_t depth,
                         int64_t count, float* y) {
  for (int64_t o = 0; o < pixels; ++o, y += depth) {
    const int64_t begin = windows[o].begin;
    const int64_t end = windows[o].end;
    const auto divisor = static_cast<float>(count * (end - begin));
    ForVectors(depth, [&](auto d, int64_t i) HWY_ATTR {
      auto a = Op::Initial(d);
      for (int64_t c = begin; c < end; ++c) a = Op::Combine(d, a, hn::LoadU(d, x + c * depth + i));
      if (count > 0) a = a / hn::Set(d, divisor);
      hn::StoreU(a, d, y + i);
    });
  }
}

}  // namespace

void RowsOfPool(PoolKind kind, const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
                float* out) {
  if (kind == PoolKind::kMax) return SomeRowsOf<Max>(x, stride, rows, first, n, out);
  SomeRowsOf<Sum>(x, stride, rows, first, n, out);
}

void PixelsOfPool(PoolKind kind, const float* x, const PoolRange* windows, int64_t pixels,
                  int64_t depth, int64_t count, float* y) {
  if (kind == PoolKind::kMax) return PixelsOf<Max>(x, windows, pixels, depth, 0, y);
  PixelsOf<Sum>(x, windows, pixels, depth, kind == PoolKind::kMean ? count : 0, y);
}

void MergePixels(const float* x, const PoolRange* windows, int64_t pixels, int64_t depth,
                 int32_t first, float* maxima, int32_t* positions) {
  for (int64_t o = 0; o < pixels; ++o, maxima += depth, positions += depth) {
    const int64_t begin = windows[o].begin;
    const int64_t end = windows[o].end;
    ForVectors(depth, [&](auto d, int64_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> di;
      auto max = hn::LoadU(d, maxima + i);
      auto position = hn::LoadU(di, positions + i);
      for (int64_t c = begin; c < end; ++c) {
        const auto value = hn::LoadU(d, x + c * depth + i);
        const auto none = hn::RebindMask(d, position < hn::Zero(di));
        const auto is_new = hn::Or(value > max, none);
        max = hn::IfThenElse(is_new, value, max);
        position = hn::IfThenElse(hn::RebindMask(di, is_new),
                                  hn::Set(di, first + static_cast<int32_t>(c)), position);
      }
      hn::StoreU(max, d, maxima + i);
      hn::StoreU(position, di, positions + i);
    });
  }
}

void AddAtMaxima(const float* dy, const int32_t* positions, const PoolRange* windows,
                 int64_t pixels, int64_t depth, int32_t first, float* dx) {
  for (int64_t o = 0; o < pixels; ++o, dy += depth, positions += depth) {
    const int64_t begin = windows[o].begin;
    const int64_t end = windows[o].end;
    ForVectors(depth, [&](auto d, int64_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> di;
      const auto gradient = hn::LoadU(d, dy + i);
      const auto position = hn::LoadU(di, positions + i);
      for (int64_t c = begin; c < end; ++c) {
        float* const to = dx + c * depth + i;
        const auto here = position == hn::Set(di, first + static_cast<int32_t>(c));
        const auto term = hn::IfThenElseZero(hn::RebindMask(d, here), gradient);
        hn::StoreU(hn::LoadU(d, to) + term, d, to);
      }
    });
  }
}

void AddWeightedRow(const float* x, float weight, int64_t n, float* out) {
  ForVectors(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto product = hn::LoadU(d, x + i) * hn::Set(d, weight);
    hn::StoreU(hn::LoadU(d, out + i) + product, d, out + i);
  });
}

void ScaleEachPixel(const float* weights, int64_t pixels, int64_t depth, float* x) {
  for (int64_t o = 0; o < pixels; ++o, x += depth) {
    ForVectors(depth, [&](auto d, int64_t i) HWY_ATTR {
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

HWY_EXPORT(RowsOfPool);
HWY_EXPORT(PixelsOfPool);
HWY_EXPORT(MergePixels);
HWY_EXPORT(AddAtMaxima);
HWY_EXPORT(AddWeightedRow);
HWY_EXPORT(ScaleEachPixel);

}  // namespace

void PoolRows(PoolKind kind, const float* x, int64_t stride, int64_t rows, bool first, int64_t n,
              float* out) {
  GRADFLOW_SIMD_DISPATCH(RowsOfPool)(kind, x, stride, rows, first, n, out);
}
void PoolPixels(PoolKind kind, const float* x, const PoolRange* windows, int64_t pixels,
                int64_t depth, int64_t count, float* y) {
  GRADFLOW_SIMD_DISPATCH(PixelsOfPool)(kind, x, windows, pixels, depth, count, y);
}
void MergeMaxima(const float* x, const PoolRange* windows, int64_t pixels, int64_t depth,
                 int32_t first, float* maxima, int32_t* positions) {
  GRADFLOW_SIMD_DISPATCH(MergePixels)(x, windows, pixels, depth, first, maxima, positions);
}
void AddToMaxima(const float* dy, const int32_t* positions, const PoolRange* windows,
                 int64_t pixels, int64_t depth, int32_t first, float* dx) {
  GRADFLOW_SIMD_DISPATCH(AddAtMaxima)(dy, positions, windows, pixels, depth, first, dx);
}
void AddWeighted(const float* x, float weight, int64_t n, float* out) {
  GRADFLOW_SIMD_DISPATCH(AddWeightedRow)(x, weight, n, out);
}
void ScalePixels(const float* weights, int64_t pixels, int64_t depth, float* x) {
  GRADFLOW_SIMD_DISPATCH(ScaleEachPixel)(weights, pixels, depth, x);
}

}  // namespace gradflow
#endif  // HWY_ONCE
