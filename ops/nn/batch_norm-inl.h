// The loops of batch normalization, for its files with SIMD kernels: sums in double, and
// elementwise functions. Rows have sums and coefficients per column; planes have them per channel.
// simd-inl.h shows how such a file looks.
//
// A sum is a struct with the function
//   Add(dd, in, channel, sums)    // adds terms of the doubles in[kInputs] to sums[kSums]
// where `channel` is Column(dd, j) for the columns from j on, or Channel(dd, c) for channel c.

#include <cstdint>

#include "gradflow/ops/common/simd-inl.h"
#include "gradflow/ops/nn/batch_norm_simd.h"

// An include guard that admits the file once for each target.
#if defined(GRADFLOW_OPS_NN_BATCH_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_OPS_NN_BATCH_NORM_INL_H_
#undef GRADFLOW_OPS_NN_BATCH_NORM_INL_H_
#else
#define GRADFLOW_OPS_NN_BATCH_NORM_INL_H_
#endif

// Calls Function<Float, non_temporal>(...), or the same for Half or Bfloat16, and returns from the
// enclosing void function.
#undef GRADFLOW_BATCH_NORM_SWITCH
#define GRADFLOW_BATCH_NORM_SWITCH(type, non_temporal, Function, ...) \
  switch (type) {                                                     \
    case ElementType::kFloat:                                         \
      return non_temporal ? Function<Float, true>(__VA_ARGS__)        \
                          : Function<Float, false>(__VA_ARGS__);      \
    case ElementType::kHalf:                                          \
      return non_temporal ? Function<Half, true>(__VA_ARGS__)         \
                          : Function<Half, false>(__VA_ARGS__);       \
    case ElementType::kBfloat16:                                      \
      return non_temporal ? Function<Bfloat16, true>(__VA_ARGS__)     \
                          : Function<Bfloat16, false>(__VA_ARGS__);   \
  }

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

using Doubles = hn::ScalableTag<double>;
constexpr int64_t kDoubles = hn::MaxLanes(Doubles());

// Loads one element for each lane of `dd`.
template <class Io, class DD>
HWY_INLINE V<DD> LoadWide(DD dd, const typename Io::Element* p) {
  return hn::PromoteTo(dd, Io::Load(hn::Rebind<float, DD>(), p));
}

// A number per column or channel that sums subtract from each element.
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

// Adds columns of kRows rows to their sums, from column j on. The rows are `distance` elements
// apart; the first row begins at element `begin`.
template <class Io, int64_t kRows, int kInputs, int kSums, class DD, class Sums>
HWY_INLINE void AddColumns(DD dd, const Sums& add, const typename Io::Element* const* in,
                           int64_t begin, int64_t distance, int64_t j, double* const* sums) {
  V<DD> s[kSums];
  GRADFLOW_UNROLL
  for (int k = 0; k < kSums; ++k) s[k] = hn::LoadU(dd, sums[k] + j);
  const auto column = add.Column(dd, j);
  GRADFLOW_UNROLL
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t i = begin + row * distance + j;
    V<DD> v[kInputs];
    GRADFLOW_UNROLL
    for (int k = 0; k < kInputs; ++k) v[k] = LoadWide<Io>(dd, in[k] + i);
    add.Add(dd, v, column, s);
  }
  GRADFLOW_UNROLL
  for (int k = 0; k < kSums; ++k) hn::StoreU(s[k], dd, sums[k] + j);
}

// The distance, in elements, at which sums over rows prefetch.
constexpr int64_t kRowPrefetchElements = 512;

// Adds kRows rows that are `distance` elements apart to the sums of their columns. Prefetches the
// next elements of each row, and at the end of a row the start of the row that is `stride` elements
// further. The processor does not look far enough ahead by itself, because each cache line takes
// much work.
template <class Io, int64_t kRows, int kInputs, int kSums, class Sums>
HWY_INLINE void AddRows(const Sums& add, const typename Io::Element* const* in, int64_t begin,
                        int64_t distance, int64_t stride, int64_t columns, double* const* sums) {
  // From this column on, the next row is prefetched.
  const int64_t turn = columns - HWY_MIN(columns, kRowPrefetchElements);
  int64_t j = 0;
  // One cache line of floats at a time.
  for (; j + kSumLanes <= columns; j += kSumLanes) {
    const int64_t ahead = j < turn ? kRowPrefetchElements : stride - turn;
    GRADFLOW_UNROLL
    for (int64_t row = 0; row < kRows; ++row) {
      GRADFLOW_UNROLL
      for (int k = 0; k < kInputs; ++k) {
        hwy::Prefetch(in[k] + begin + row * distance + j + ahead);
      }
    }
    GRADFLOW_UNROLL
    for (int64_t part = 0; part < kSumLanes; part += kDoubles) {
      AddColumns<Io, kRows, kInputs, kSums>(Doubles(), add, in, begin, distance, j + part, sums);
    }
  }
  const hn::CappedTag<double, 1> one;
  for (; j < columns; ++j) {
    AddColumns<Io, kRows, kInputs, kSums>(one, add, in, begin, distance, j, sums);
  }
}

// Adds the sums of each column to sums[kSums][columns].
template <class Io, int kInputs, int kSums, class Sums>
HWY_INLINE void SumRows(const Sums& add, const typename Io::Element* const* in,
                        const BatchNormRows& rows, double* const* sums) {
  // A local copy of the pointers: the compiler would otherwise reload them after each store of a
  // sum.
  double* to[kSums];
  for (int k = 0; k < kSums; ++k) to[k] = sums[k];
  const RowPairs pairs = PairRows(rows.rows);
  for (int64_t row = 0; row < pairs.pairs; ++row) {
    AddRows<Io, 2, kInputs, kSums>(add, in, row * rows.stride, pairs.distance * rows.stride,
                                   rows.stride, rows.columns, to);
  }
  for (int64_t row = pairs.pairs; row < pairs.distance; ++row) {
    AddRows<Io, 1, kInputs, kSums>(add, in, row * rows.stride, 0, rows.stride, rows.columns, to);
  }
}

// Maps kVectors vectors of kRows rows, from column j on. The rows are `distance` elements apart.
template <class Io, int64_t kRows, int64_t kVectors, int kInputs, bool kNonTemporal, class D,
          class Map>
HWY_INLINE void MapColumns(D d, const Map& map, const typename Io::Element* const* in,
                           typename Io::Element* out, int64_t begin, int64_t distance, int64_t j) {
  constexpr int64_t kLanes = hn::MaxLanes(D());
  GRADFLOW_UNROLL
  for (int64_t row = 0; row < kRows; ++row) {
    GRADFLOW_UNROLL
    for (int64_t u = 0; u < kVectors; ++u) {
      const auto function = map.Column(d, j + u * kLanes);
      V<D> v[kInputs];
      GRADFLOW_UNROLL
      for (int k = 0; k < kInputs; ++k) {
        v[k] = Io::Load(d, in[k] + begin + row * distance + j + u * kLanes);
      }
      Put<Io, kNonTemporal>(d, function(v), out + begin + row * distance + j + u * kLanes);
    }
  }
}

template <class Io, int64_t kRows, int kInputs, bool kNonTemporal, class Map>
HWY_INLINE void MapSomeRows(const Map& map, const typename Io::Element* const* in,
                            typename Io::Element* out, int64_t begin, int64_t distance,
                            int64_t columns) {
  constexpr int64_t kStep = kFull;
  // One cache line of floats, so that a non-temporal store fills it at once.
  constexpr int64_t kLineVectors = kSumLanes / kStep;
  int64_t j = 0;
  for (; j + kSumLanes <= columns; j += kSumLanes) {
    MapColumns<Io, kRows, kLineVectors, kInputs, kNonTemporal>(Full(), map, in, out, begin,
                                                               distance, j);
  }
  for (; j < columns; ++j) {
    MapColumns<Io, kRows, 1, kInputs, kNonTemporal>(One(), map, in, out, begin, distance, j);
  }
}

// out = map.Column(d, j)(in) for all columns j of all rows.
template <class Io, int kInputs, bool kNonTemporal, class Map>
HWY_INLINE void MapRows(const Map& map, const typename Io::Element* const* in,
                        typename Io::Element* out, const BatchNormRows& rows) {
  // Plain stores are fastest in order, because the processor can then predict the next lines.
  const RowPairs pairs = kNonTemporal ? PairRows(rows.rows) : RowPairs{0, rows.rows};
  for (int64_t row = 0; row < pairs.pairs; ++row) {
    MapSomeRows<Io, 2, kInputs, kNonTemporal>(map, in, out, row * rows.stride,
                                              pairs.distance * rows.stride, rows.columns);
  }
  for (int64_t row = pairs.pairs; row < pairs.distance; ++row) {
    MapSomeRows<Io, 1, kInputs, kNonTemporal>(map, in, out, row * rows.stride, 0, rows.columns);
  }
}

// ---- Planes ----

// The last elements of a run, fewer than kSumLanes, as full vectors.
template <class Element>
struct RunEnd {
  alignas(64) Element elements[kSumLanes];

  // Loads n elements, and fills the rest with `pad`.
  HWY_INLINE void Load(const Element* from, int64_t n, Element pad) {
    // AVX-512 has masked loads of both element sizes, AVX2 only of floats.
    if constexpr (HWY_TARGET <= HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(Element) == 4)) {
      const hn::CappedTag<Element, kSumLanes> d;
      constexpr int64_t kLanes = hn::MaxLanes(d);
      GRADFLOW_UNROLL
      for (int64_t i = 0; i < kSumLanes; i += kLanes) {
        const int64_t left = HWY_MIN(HWY_MAX(n - i, 0), kLanes);
        const auto mask = hn::FirstN(d, static_cast<size_t>(left));
        const auto loaded = hn::MaskedLoad(mask, d, from + i);
        hn::Store(hn::IfThenElse(mask, loaded, hn::Set(d, pad)), d, elements + i);
      }
    } else {
      for (int64_t i = 0; i < kSumLanes; ++i) elements[i] = i < n ? from[i] : pad;
    }
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
// The distance, in elements, at which sums over planes prefetch.
constexpr int64_t kPrefetchElements = 1024;

// Adds the kSumLanes elements from in[k][i] on.
template <class Io, int kInputs, int kSums, class Sums, class Coefficient>
HWY_INLINE void AddLanes(const Sums& add, const Coefficient& channel,
                         const typename Io::Element* const* in, int64_t i,
                         V<Doubles> (&s)[kLaneVectors][kSums]) {
  const Doubles dd;
  GRADFLOW_UNROLL
  for (int64_t u = 0; u < kLaneVectors; ++u) {
    V<Doubles> v[kInputs];
    GRADFLOW_UNROLL
    for (int k = 0; k < kInputs; ++k) v[k] = LoadWide<Io>(dd, in[k] + i + u * kDoubles);
    add.Add(dd, v, channel, s[u]);
  }
}

// Adds a run of channel c to lanes[kSums][kSumLanes]. Prefetches the next elements of the run, and
// then the run that begins `next` elements further.
// REQUIRES: adding `pad` does not change a sum
template <class Io, int kInputs, int kSums, class Sums>
HWY_INLINE void SumRun(const Sums& add, int64_t c, const typename Io::Element* const* in, int64_t n,
                       int64_t next, typename Io::Element pad, double* lanes) {
  const Doubles dd;
  V<Doubles> s[kLaneVectors][kSums];
  GRADFLOW_UNROLL
  for (int64_t u = 0; u < kLaneVectors; ++u) {
    GRADFLOW_UNROLL
    for (int k = 0; k < kSums; ++k) {
      s[u][k] = hn::LoadU(dd, lanes + k * kSumLanes + u * kDoubles);
    }
  }
  const auto channel = add.Channel(dd, c);
  // From this element on, the next run is prefetched.
  const int64_t turn = n - HWY_MIN(n, kPrefetchElements);
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    const int64_t ahead = i < turn ? kPrefetchElements : next - turn;
    GRADFLOW_UNROLL
    for (int k = 0; k < kInputs; ++k) hwy::Prefetch(in[k] + i + ahead);
    AddLanes<Io, kInputs>(add, channel, in, i, s);
  }
  if (i < n) {
    RunEnd<typename Io::Element> ends[kInputs];
    const typename Io::Element* from[kInputs];
    GRADFLOW_UNROLL
    for (int k = 0; k < kInputs; ++k) {
      ends[k].Load(in[k] + i, n - i, pad);
      from[k] = ends[k].elements;
    }
    AddLanes<Io, kInputs>(add, channel, from, 0, s);
  }
  GRADFLOW_UNROLL
  for (int64_t u = 0; u < kLaneVectors; ++u) {
    GRADFLOW_UNROLL
    for (int k = 0; k < kSums; ++k) {
      hn::StoreU(s[u][k], dd, lanes + k * kSumLanes + u * kDoubles);
    }
  }
}

// out = function(in) over a run.
template <class Io, int kInputs, bool kNonTemporal, class Function>
HWY_INLINE void MapRun(const Function& function, const typename Io::Element* const* in,
                       typename Io::Element* out, int64_t n) {
  constexpr int64_t kStep = kFull;
  const Full d;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    V<Full> v[kInputs];
    GRADFLOW_UNROLL
    for (int k = 0; k < kInputs; ++k) v[k] = Io::Load(d, in[k] + i);
    Put<Io, kNonTemporal>(d, function(v), out + i);
  }
  if (i == n) return;
  RunEnd<typename Io::Element> ends[kInputs];
  RunEnd<typename Io::Element> result;
  GRADFLOW_UNROLL
  for (int k = 0; k < kInputs; ++k) ends[k].Load(in[k] + i, n - i, 0);
  V<Full> v[kInputs];
  GRADFLOW_UNROLL
  for (int k = 0; k < kInputs; ++k) v[k] = Io::Load(d, ends[k].elements);
  Io::Store(d, function(v), result.elements);
  result.Store(n - i, out + i);
}

// Returns the distance from a channel's run to the run that follows.
HWY_INLINE int64_t NextRun(const Planes& planes, int64_t channel) {
  return channel + 1 < planes.channels
             ? planes.channel_stride
             : planes.image_stride - (planes.channels - 1) * planes.channel_stride;
}

// Calls fn(channel, offset) for each run.
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
