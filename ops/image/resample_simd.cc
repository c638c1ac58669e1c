#include "gradflow/ops/image/resample_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/image/resample_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// The pixels whose weighted sum is a pixel of the result.
struct WeightedPixels {
  const float* x;
  int64_t depth;
  const int32_t* indices;
  const float* weights;
  int64_t taps;

  const float* Pixel(int64_t k) const { return x + indices[k] * depth; }
};

// Weighted sums of a window for a vector of channels, starting at channel c. Computed in vectors of
// `Number`.
struct Linear {
  using Number = float;
  template <class D>
  static HWY_INLINE V<D> Sum(D d, const WeightedPixels& w, int64_t c) {
    const auto a = hn::LoadU(d, w.Pixel(0) + c);
    return a + (hn::LoadU(d, w.Pixel(1) + c) - a) * hn::Set(d, w.weights[1]);
  }
};

struct FourTaps {
  using Number = float;
  template <class D>
  static HWY_INLINE V<D> Sum(D d, const WeightedPixels& w, int64_t c) {
    auto sum = hn::LoadU(d, w.Pixel(0) + c) * hn::Set(d, w.weights[0]);
    GRADFLOW_UNROLL
    for (int64_t k = 1; k < 4; ++k) {
      sum = sum + hn::LoadU(d, w.Pixel(k) + c) * hn::Set(d, w.weights[k]);
    }
    return sum;
  }
};

struct InDouble {
  using Number = double;
  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D>> Sum(D d, const WeightedPixels& w, int64_t c) {
    const hn::Rebind<float, D> df;
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < w.taps; ++k) {
      const auto x = hn::PromoteTo(d, hn::LoadU(df, w.Pixel(k) + c));
      sum = sum + x * hn::Set(d, static_cast<double>(w.weights[k]));
    }
    return Narrowed(d, sum);
  }
};

template <class Op, class D>
HWY_INLINE void SetPixel(D d, const WeightedPixels& window, int64_t c, float* y) {
  hn::StoreU(Op::Sum(d, window, c), hn::Rebind<float, D>(), y + c);
}

// A vector of four lanes, or fewer if vectors are shorter.
template <class Op>
using Four = hn::CappedTag<typename Op::Number, 4>;
template <class D>
constexpr int64_t NumLanes(D d) {
  return static_cast<int64_t>(hn::MaxLanes(d));
}

template <class Op>
HWY_INLINE void SetChannels(const WeightedPixels& window, float* y) {
  using Number = typename Op::Number;
  const hn::ScalableTag<Number> full;
  const Four<Op> four;
  int64_t c = 0;
  for (; c + NumLanes(full) <= window.depth; c += NumLanes(full)) SetPixel<Op>(full, window, c, y);
  for (; c + NumLanes(four) <= window.depth; c += NumLanes(four)) SetPixel<Op>(four, window, c, y);
  for (; c < window.depth; ++c) SetPixel<Op>(hn::CappedTag<Number, 1>(), window, c, y);
}

// Sets pixels with kDepth channels, two or three, using vectors of four. A vector also reads and
// writes a part of the next pixel, which the next step overwrites. Returns the number of pixels
// that were set, at most `pixels`.
template <class Op, int kDepth>
HWY_INLINE int64_t SetNarrowPixels(const PixelRow& x, const int32_t* indices, const float* weights,
                                   int64_t taps, int64_t pixels, float* y) {
  const Four<Op> d;
  if (NumLanes(d) < 4) return 0;
  const int64_t last = x.pixels - 1;
  WeightedPixels window = {x.data, kDepth, indices, weights, taps};
  for (int64_t i = 0; i < pixels - 1; ++i, y += kDepth) {
    bool has_next = true;
    GRADFLOW_UNROLL
    for (int64_t k = 0; k < taps; ++k) has_next = has_next && window.indices[k] < last;
    if (has_next) {
      SetPixel<Op>(d, window, 0, y);
    } else {
      SetChannels<Op>(window, y);
    }
    window.indices += taps;
    window.weights += taps;
  }
  return pixels - 1;
}

template <class Op>
HWY_INLINE void SetPixels(const PixelRow& x, const int32_t* indices, const float* weights,
                          int64_t taps, int64_t pixels, float* y) {
  int64_t i = 0;
  if (x.depth == 2) i = SetNarrowPixels<Op, 2>(x, indices, weights, taps, pixels, y);
  if (x.depth == 3) i = SetNarrowPixels<Op, 3>(x, indices, weights, taps, pixels, y);
  for (; i < pixels; ++i) {
    SetChannels<Op>({x.data, x.depth, indices + i * taps, weights + i * taps, taps},
                    y + i * x.depth);
  }
}

template <bool kNonTemporal>
HWY_INLINE void Interpolate(const float* a, const float* b, float weight, int64_t n, float* y) {
  ForEachVector(n, [=](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, a + i);
    Put<Float, kNonTemporal>(d, v + (hn::LoadU(d, b + i) - v) * hn::Set(d, weight), y + i);
  });
}

// kCount is the number of rows; 0 if `count` is the number.
template <int kCount, bool kNonTemporal>
HWY_INLINE void Add(const float* const* rows, const float* weights, int64_t count, bool add,
                    int64_t n, float* y) {
  const int64_t num_rows = kCount > 0 ? kCount : count;
  ForEachVector(n, [=](auto d, int64_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, rows[0] + i) * hn::Set(d, weights[0]);
    if (add) sum = hn::LoadU(d, y + i) + sum;
    GRADFLOW_UNROLL
    for (int64_t k = 1; k < num_rows; ++k) {
      sum = sum + hn::LoadU(d, rows[k] + i) * hn::Set(d, weights[k]);
    }
    Put<Float, kNonTemporal>(d, sum, y + i);
  });
}

}  // namespace

void ResamplePixels(Weighting weighting, const PixelRow& x, const int32_t* indices,
                    const float* weights, int64_t taps, int64_t pixels, float* y) {
  switch (weighting) {
    case Weighting::kLinear:
      return SetPixels<Linear>(x, indices, weights, 2, pixels, y);
    case Weighting::kFour:
      return SetPixels<FourTaps>(x, indices, weights, 4, pixels, y);
    case Weighting::kDouble:
      return SetPixels<InDouble>(x, indices, weights, taps, pixels, y);
  }
}

void InterpolateRows(const float* a, const float* b, float weight, int64_t n, bool non_temporal,
                     float* y) {
  non_temporal ? Interpolate<true>(a, b, weight, n, y) : Interpolate<false>(a, b, weight, n, y);
}

void AddRows(const float* const* rows, const float* weights, int64_t count, bool add, int64_t n,
             bool non_temporal, float* y) {
  if (count == 4) {
    return non_temporal ? Add<4, true>(rows, weights, count, add, n, y)
                        : Add<4, false>(rows, weights, count, add, n, y);
  }
  non_temporal ? Add<0, true>(rows, weights, count, add, n, y)
               : Add<0, false>(rows, weights, count, add, n, y);
}

void AddScaledFloats(const float* x, float weight, int64_t n, double* sums) {
  ForEachVector<double>(n, [=](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(d)> df;
    const auto product =
        hn::PromoteTo(d, hn::LoadU(df, x + i)) * hn::Set(d, static_cast<double>(weight));
    hn::StoreU(hn::LoadU(d, sums + i) + product, d, sums + i);
  });
}

void DistributePixels(const double* sums, const int32_t* indices, const float* weights,
                      int64_t taps, int64_t pixels, int64_t depth, double* dx) {
  for (int64_t i = 0; i < pixels; ++i, sums += depth) {
    for (int64_t k = 0; k < taps; ++k) {
      const auto weight = static_cast<double>(weights[i * taps + k]);
      if (weight == 0) continue;
      double* const to = dx + indices[i * taps + k] * depth;
      ForEachVector<double>(depth, [=](auto d, int64_t c) HWY_ATTR {
        const auto product = hn::LoadU(d, sums + c) * hn::Set(d, weight);
        hn::StoreU(hn::LoadU(d, to + c) + product, d, to + c);
      });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

HWY_EXPORT(ResamplePixels);
HWY_EXPORT(InterpolateRows);
HWY_EXPORT(AddRows);
HWY_EXPORT(AddScaledFloats);
HWY_EXPORT(DistributePixels);

}  // namespace

void ResamplePixels(Weighting weighting, const PixelRow& x, const int32_t* indices,
                    const float* weights, int64_t taps, int64_t pixels, float* y) {
  GRADFLOW_SIMD_DISPATCH(ResamplePixels)(weighting, x, indices, weights, taps, pixels, y);
}
void InterpolateRows(const float* a, const float* b, float weight, int64_t n, bool non_temporal,
                     float* y) {
  GRADFLOW_SIMD_DISPATCH(InterpolateRows)(a, b, weight, n, non_temporal, y);
}
void AddRows(const float* const* rows, const float* weights, int64_t count, bool add, int64_t n,
             bool non_temporal, float* y) {
  GRADFLOW_SIMD_DISPATCH(AddRows)(rows, weights, count, add, n, non_temporal, y);
}

void AddScaledFloats(const float* x, float weight, int64_t n, double* sums) {
  GRADFLOW_SIMD_DISPATCH(AddScaledFloats)(x, weight, n, sums);
}
void DistributePixels(const double* sums, const int32_t* indices, const float* weights,
                      int64_t taps, int64_t pixels, int64_t depth, double* dx) {
  GRADFLOW_SIMD_DISPATCH(DistributePixels)(sums, indices, weights, taps, pixels, depth, dx);
}

}  // namespace gradflow
#endif  // HWY_ONCE
