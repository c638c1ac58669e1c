// The loops of batch normalisation, for its files with SIMD kernels: sums in double and elementwise
// functions, over rows (with sums and coefficients for each column) and over planes (for each
// channel). See simd-inl.h for what such files look like.
//
// Sums are functions
//   Add(dd, in, channel, sums)    // adds something of the doubles in[kInputs] to sums[kSums]
// where `channel` is what Column(dd, j) has for columns from j on, or Channel(dd, c) for one
// channel.

#include <cstdint>

#include "gradflow/ops/batch_norm_simd.h"
#include "gradflow/ops/simd-inl.h"

// A guard that holds once for each target.
#if defined(GRADFLOW_OPS_BATCH_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_OPS_BATCH_NORM_INL_H_
#undef GRADFLOW_OPS_BATCH_NORM_INL_H_
#else
#define GRADFLOW_OPS_BATCH_NORM_INL_H_
#endif

// Returns from the enclosing void function after Function<Float, stream>(...), and so on.
#undef GRADFLOW_BATCH_NORM_SWITCH
#define GRADFLOW_BATCH_NORM_SWITCH(type, stream, Function, ...)                                 \
  switch (type) {                                                                               \
    case ElementType::kFloat:                                                                   \
      return stream ? Function<Float, true>(__VA_ARGS__) : Function<Float, false>(__VA_ARGS__); \
    case ElementType::kHalf:                                                                    \
      return stream ? Function<Half, true>(__VA_ARGS__) : Function<Half, false>(__VA_ARGS__);   \
    case ElementType::kBfloat16:                                                                \
      return stream ? Function<Bfloat16, true>(__VA_ARGS__)                                     \
                    : Function<Bfloat16, false>(__VA_ARGS__);                                   \
  }

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

using Doubles = hn::ScalableTag<double>;
constexpr int64_t kDoubles = hn::MaxLanes(Doubles());

// As many elements as `dd` has lanes.
template <class Io, class DD>
HWY_INLINE V<DD> LoadWide(DD dd, const typename Io::Element* p) {
  return hn::PromoteTo(dd, Io::Load(hn::Rebind<float, DD>(), p));
}

// A number of each column or channel, for sums to be taken of what differs from it.
struct Shift {
  const float* shift;

  template <class DD>
  HWY_INLINE V<DD> Column(DD dd, int64_t j) const {
    return LoadWide<Float>(dd, shift + j);
  }
  template <class DD>
  HWY_INLINE V<DD> Channel(DD dd, int64_t c) const {
    return hn::Set(dd, static_cast<double>(shift[c]));
  }
};

// ---- Rows ----

// Rows that are gone through together: columns' sums and coefficients are in registers meanwhile.
constexpr int64_t kRowsAtATime = 2;

// Columns from j on of some rows, the first of which begins at element `begin`.
template <class Io, int64_t kRows, int kInputs, int kSums, class DD, class Sums>
HWY_INLINE void AddColumns(DD dd, const Sums& add, const typename Io::Element* const* in,
                           int64_t begin, int64_t stride, int64_t j, double* const* sums) {
  V<DD> s[kSums];
  for (int k = 0; k < kSums; ++k) s[k] = hn::LoadU(dd, sums[k] + j);
  const auto column = add.Column(dd, j);
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t i = begin + row * stride + j;
    V<DD> v[kInputs];
    for (int k = 0; k < kInputs; ++k) v[k] = LoadWide<Io>(dd, in[k] + i);
    add.Add(dd, v, column, s);
  }
  for (int k = 0; k < kSums; ++k) hn::StoreU(s[k], dd, sums[k] + j);
}

// Work of more than a few instructions keeps a processor from looking far enough ahead by itself:
// without this, the sums of [32,56,56,64] took 1.5 times as long, and streaming 1.1 times.
template <int64_t kRows, int kInputs, class Element>
HWY_INLINE void PrefetchNextRows(const Element* const* in, int64_t i, int64_t stride) {
  for (int64_t row = kRows; row < 2 * kRows; ++row) {
    for (int k = 0; k < kInputs; ++k) hwy::Prefetch(in[k] + i + row * stride);
  }
}

template <class Io, int64_t kRows, int kInputs, int kSums, class Sums>
HWY_INLINE void AddRows(const Sums& add, const typename Io::Element* const* in, int64_t begin,
                        int64_t stride, int64_t columns, double* const* sums) {
  constexpr int64_t kStep = kDoubles > 4 ? kDoubles : 4;
  int64_t j = 0;
  // A cache line of floats at a time, or half of one.
  for (; j + 2 * kStep <= columns; j += 2 * kStep) {
    PrefetchNextRows<kRows, kInputs>(in, begin + j, stride);
    for (int64_t part = 0; part < 2 * kStep; part += kDoubles) {
      AddColumns<Io, kRows, kInputs, kSums>(Doubles(), add, in, begin, stride, j + part, sums);
    }
  }
  const hn::CappedTag<double, 1> one;
  for (; j < columns; ++j) {
    AddColumns<Io, kRows, kInputs, kSums>(one, add, in, begin, stride, j, sums);
  }
}

// Sums of each column, added to sums[kSums][columns].
template <class Io, int kInputs, int kSums, class Sums>
HWY_INLINE void SumRows(const Sums& add, const typename Io::Element* const* in,
                        const BatchNormRows& rows, double* const* sums) {
  // A copy in registers: stores of sums could change what a pointer points to.
  double* to[kSums];
  for (int k = 0; k < kSums; ++k) to[k] = sums[k];
  int64_t row = 0;
  for (; row + kRowsAtATime <= rows.rows; row += kRowsAtATime) {
    AddRows<Io, kRowsAtATime, kInputs, kSums>(add, in, row * rows.stride, rows.stride, rows.columns,
                                              to);
  }
  for (; row < rows.rows; ++row) {
    AddRows<Io, 1, kInputs, kSums>(add, in, row * rows.stride, rows.stride, rows.columns, to);
  }
}

template <class Io, int64_t kRows, int kInputs, bool kStream, class D, class Map>
HWY_INLINE void MapColumns(D d, const Map& map, const typename Io::Element* const* in,
                           typename Io::Element* out, int64_t begin, int64_t stride, int64_t j) {
  const auto function = map.Column(d, j);
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t i = begin + row * stride + j;
    V<D> v[kInputs];
    for (int k = 0; k < kInputs; ++k) v[k] = Io::Load(d, in[k] + i);
    Put<Io, kStream>(d, function(v), out + i);
  }
}

template <class Io, int64_t kRows, int kInputs, bool kStream, class Map>
HWY_INLINE void MapSomeRows(const Map& map, const typename Io::Element* const* in,
                            typename Io::Element* out, int64_t begin, int64_t stride,
                            int64_t columns) {
  constexpr int64_t kStep = kFull;
  int64_t j = 0;
  for (; j + kStep <= columns; j += kStep) {
    if (kStream) PrefetchNextRows<kRows, kInputs>(in, begin + j, stride);
    MapColumns<Io, kRows, kInputs, kStream>(Full(), map, in, out, begin, stride, j);
  }
  for (; j < columns; ++j) {
    MapColumns<Io, kRows, kInputs, kStream>(One(), map, in, out, begin, stride, j);
  }
}

// out = map.Column(d, j)(in) for all columns j of all rows.
template <class Io, int kInputs, bool kStream, class Map>
HWY_INLINE void MapRows(const Map& map, const typename Io::Element* const* in,
                        typename Io::Element* out, const BatchNormRows& rows) {
  // Plain stores are fastest in order, where the processor sees what lines they want next.
  constexpr int64_t kRows = kStream ? kRowsAtATime : 1;
  int64_t row = 0;
  for (; row + kRows <= rows.rows; row += kRows) {
    MapSomeRows<Io, kRows, kInputs, kStream>(map, in, out, row * rows.stride, rows.stride,
                                             rows.columns);
  }
  for (; row < rows.rows; ++row) {
    MapSomeRows<Io, 1, kInputs, kStream>(map, in, out, row * rows.stride, rows.stride,
                                         rows.columns);
  }
}

// ---- Planes ----

// The end of a run, less than kSumLanes elements, as full vectors.
template <class Element>
struct RunEnd {
  alignas(64) Element elements[kSumLanes];

  // n elements, and behind them `pad`.
  HWY_INLINE void Load(const Element* from, int64_t n, Element pad) {
#if HWY_TARGET <= HWY_AVX3
    const hn::CappedTag<Element, kSumLanes> d;
    const auto mask = hn::FirstN(d, static_cast<size_t>(n));
    hn::Store(hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), hn::Set(d, pad)), d, elements);
#else
    for (int64_t i = 0; i < kSumLanes; ++i) elements[i] = i < n ? from[i] : pad;
#endif
  }
  HWY_INLINE void Store(int64_t n, Element* to) const {
#if HWY_TARGET <= HWY_AVX3
    const hn::CappedTag<Element, kSumLanes> d;
    hn::BlendedStore(hn::Load(d, elements), hn::FirstN(d, static_cast<size_t>(n)), d, to);
#else
    for (int64_t i = 0; i < n; ++i) to[i] = elements[i];
#endif
  }
};

constexpr int64_t kLaneVectors = kSumLanes / kDoubles;
// How far ahead of sums elements are prefetched.
constexpr int64_t kPrefetchElements = 1024;

// kSumLanes elements, from in[k][i] on.
template <class Io, int kInputs, int kSums, class Sums, class Coefficient>
HWY_INLINE void AddLanes(const Sums& add, const Coefficient& channel,
                         const typename Io::Element* const* in, int64_t i,
                         V<Doubles> (&s)[kLaneVectors][kSums]) {
  const Doubles dd;
  for (int64_t u = 0; u < kLaneVectors; ++u) {
    V<Doubles> v[kInputs];
    for (int k = 0; k < kInputs; ++k) v[k] = LoadWide<Io>(dd, in[k] + i + u * kDoubles);
    add.Add(dd, v, channel, s[u]);
  }
}

// Sums over a run of channel c, added to lanes[kSums][kSumLanes]. Adding `pad` changes no sum. The
// elements to come, first of the run and then of the one that begins `next` elements further on,
// are prefetched.
template <class Io, int kInputs, int kSums, class Sums>
HWY_INLINE void SumRun(const Sums& add, int64_t c, const typename Io::Element* const* in, int64_t n,
                       int64_t next, typename Io::Element pad, double* lanes) {
  const Doubles dd;
  V<Doubles> s[kLaneVectors][kSums];
  for (int64_t u = 0; u < kLaneVectors; ++u) {
    for (int k = 0; k < kSums; ++k) {
      s[u][k] = hn::LoadU(dd, lanes + k * kSumLanes + u * kDoubles);
    }
  }
  const auto channel = add.Channel(dd, c);
  // From here on the next run is prefetched.
  const int64_t turn = n - HWY_MIN(n, kPrefetchElements);
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    const int64_t ahead = i < turn ? kPrefetchElements : next - turn;
    for (int k = 0; k < kInputs; ++k) hwy::Prefetch(in[k] + i + ahead);
    AddLanes<Io, kInputs>(add, channel, in, i, s);
  }
  if (i < n) {
    RunEnd<typename Io::Element> ends[kInputs];
    const typename Io::Element* from[kInputs];
    for (int k = 0; k < kInputs; ++k) {
      ends[k].Load(in[k] + i, n - i, pad);
      from[k] = ends[k].elements;
    }
    AddLanes<Io, kInputs>(add, channel, from, 0, s);
  }
  for (int64_t u = 0; u < kLaneVectors; ++u) {
    for (int k = 0; k < kSums; ++k) {
      hn::StoreU(s[u][k], dd, lanes + k * kSumLanes + u * kDoubles);
    }
  }
}

// out = function(in) over a run.
template <class Io, int kInputs, bool kStream, class Function>
HWY_INLINE void MapRun(const Function& function, const typename Io::Element* const* in,
                       typename Io::Element* out, int64_t n) {
  constexpr int64_t kStep = kFull;
  const Full d;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    V<Full> v[kInputs];
    for (int k = 0; k < kInputs; ++k) v[k] = Io::Load(d, in[k] + i);
    Put<Io, kStream>(d, function(v), out + i);
  }
  if (i == n) return;
  RunEnd<typename Io::Element> ends[kInputs];
  RunEnd<typename Io::Element> result;
  for (int k = 0; k < kInputs; ++k) ends[k].Load(in[k] + i, n - i, 0);
  V<Full> v[kInputs];
  for (int k = 0; k < kInputs; ++k) v[k] = Io::Load(d, ends[k].elements);
  Io::Store(d, function(v), result.elements);
  result.Store(n - i, out + i);
}

// From the beginning of a run of a channel to that of the next run in order.
HWY_INLINE int64_t NextRun(const Planes& planes, int64_t channel) {
  return channel + 1 < planes.channels
             ? planes.channel_stride
             : planes.image_stride - (planes.channels - 1) * planes.channel_stride;
}

// fn(channel, offset) for each run.
template <class Fn>
HWY_INLINE void ForEachRun(const Planes& planes, const Fn& fn) {
  for (int64_t image = 0; image < planes.images; ++image) {
    for (int64_t channel = 0; channel < planes.channels; ++channel) {
      fn(channel, image * planes.image_stride + channel * planes.channel_stride);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif  // the guard of each target
