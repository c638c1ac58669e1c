#include "gradflow/ops/quant/integer_product_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/quant/integer_product_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// ---- Results ----

// Adding and subtracting this number rounds floats below 2^22 to the nearest integer, halves to
// even.
constexpr float kRound = 0x1.8p23f;

// Stores the results of channels [c, c + lanes). The sums include sum_offset.
template <class D, class VI>
HWY_INLINE void StoreResults(D d, VI sums, int64_t c, int32_t row_sum, const IntegerStore& store,
                             void* y) {
  const hn::RebindToSigned<D> di;
  if (store.row_factor != nullptr) {
    sums = sums + hn::LoadU(di, store.row_factor + c) * hn::Set(di, row_sum);
  }
  if (store.fixed != nullptr) {
    HWY_ALIGN int32_t lanes[hn::MaxLanes(D())];
    hn::Store(sums, di, lanes);
    return StoreFixedPoint(lanes, c, static_cast<int64_t>(hn::Lanes(d)), store,
                           static_cast<uint8_t*>(y));
  }
  const V<D> value =
      hn::ConvertTo(d, sums) * hn::LoadU(d, store.multiplier + c) + hn::LoadU(d, store.offset + c);
  const V<D> lowest = hn::Set(d, store.lowest);
  const V<D> highest = hn::Set(d, store.highest);
  if (store.is_float) {
    // Comparisons, because minima and maxima of zeros depend on the processor.
    const V<D> least = hn::IfThenElse(value > lowest, value, lowest);
    hn::StoreU(hn::IfThenElse(least < highest, least, highest), d, static_cast<float*>(y));
  } else {
    const V<D> round = hn::Set(d, kRound);
    const V<D> clamped = hn::Min(hn::Max(value, lowest), highest);
    const auto rounded =
        hn::ConvertTo(di, (clamped + round) - round) + hn::Set(di, store.zero_point);
    hn::StoreU(hn::DemoteTo(hn::Rebind<uint8_t, D>(), rounded), hn::Rebind<uint8_t, D>(),
               static_cast<uint8_t*>(y));
  }
}

HWY_INLINE void* At(void* y, int64_t i, bool is_float) {
  return is_float ? static_cast<void*>(static_cast<float*>(y) + i)
                  : static_cast<void*>(static_cast<uint8_t*>(y) + i);
}

// Stores `n` results from sums[kIntegerBlock].
HWY_INLINE void StoreSums(const int32_t* sums, int64_t c, int64_t n, int32_t row_sum,
                          const IntegerStore& store, void* y) {
  for (int64_t i = 0; i < n; ++i) {
    StoreResults(One(), hn::LoadU(hn::CappedTag<int32_t, 1>(), sums + i), c + i, row_sum, store,
                 At(y, i, store.is_float));
  }
}

// ---- Products ----

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

using Int = hn::ScalableTag<int32_t>;
using Short = hn::Repartition<int16_t, Int>;
constexpr int64_t kLanes = hn::MaxLanes(Int());
// Vectors of a block of channels.
constexpr int kVectors = static_cast<int>(kIntegerBlock / kLanes);

HWY_INLINE int32_t LoadGroup(const uint8_t* x) {
  int32_t group;
  __builtin_memcpy(&group, x, sizeof(group));
  return group;
}

// Four bytes of each lane, as two vectors of 16-bit integers: the even and the odd bytes.
struct Pair {
  V<Short> even;
  V<Short> odd;
};
HWY_INLINE Pair UnsignedPair(V<Int> bytes) {
  const Short d;
  const hn::RebindToUnsigned<Short> du;
  return {hn::And(hn::BitCast(d, bytes), hn::Set(d, 0xff)),
          hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(du, bytes)))};
}
HWY_INLINE Pair SignedPair(V<Int> bytes) {
  const auto shorts = hn::BitCast(Short(), bytes);
  return {hn::ShiftRight<8>(hn::ShiftLeft<8>(shorts)), hn::ShiftRight<8>(shorts)};
}
// Adds the four products of each lane. The sums of two products fit in 32 bits.
HWY_INLINE V<Int> AddProducts(V<Int> sum, const Pair& x, const Pair& w) {
  V<Int> unused = hn::Zero(Int());
  sum = hn::ReorderWidenMulAccumulate(Int(), x.even, w.even, sum, unused);
  return hn::ReorderWidenMulAccumulate(Int(), x.odd, w.odd, sum, unused);
}

// The instruction VPDPBUSD adds the same four products. Highway 1.0 does not have it, and the
// target AVX3 does not imply it.
#if HWY_TARGET <= HWY_AVX3
#define GRADFLOW_HAS_BYTE_PRODUCTS 1
HWY_INLINE void AddByteProducts(V<Int>* sum, V<Int> x, V<Int> w) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum->raw) : "v"(x.raw), "v"(w.raw));
}
#else
#define GRADFLOW_HAS_BYTE_PRODUCTS 0
#endif

// Computes kRows rows and kBlocks blocks of channels. `n` is the number of channels to store.
template <int kRows, int kBlocks, bool kBytes>
HWY_INLINE void MultiplyTile(const IntegerProductTile& tile, const IntegerStore& all_stores,
                             int64_t row, int64_t block, int64_t n) {
  const Int d;
  // A copy, which stores of bytes do not change.
  const IntegerStore store = all_stores;
  constexpr int kSums = kBlocks * kVectors;
  const int64_t block_size = tile.groups * kIntegerBlock * kIntegerGroup;
  const uint8_t* const x = tile.x + row * tile.x_stride;
  const int8_t* const w = tile.weights + block * block_size;
  V<Int> sums[kRows][kSums];
  GRADFLOW_UNROLL
  for (int r = 0; r < kRows; ++r) {
    GRADFLOW_UNROLL
    for (int v = 0; v < kSums; ++v) {
      sums[r][v] = hn::LoadU(d, store.sum_offset + block * kIntegerBlock + v * kLanes);
    }
  }
  for (int64_t g = 0; g < tile.groups; ++g) {
    V<Int> bytes[kSums];
    GRADFLOW_UNROLL
    for (int v = 0; v < kSums; ++v) {
      const int8_t* const from = w + (v / kVectors) * block_size +
                                 g * kIntegerBlock * kIntegerGroup +
                                 (v % kVectors) * kLanes * kIntegerGroup;
      bytes[v] = hn::LoadU(d, reinterpret_cast<const int32_t*>(from));
    }
#if GRADFLOW_HAS_BYTE_PRODUCTS
    if constexpr (kBytes) {
      GRADFLOW_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const V<Int> group = hn::Set(d, LoadGroup(x + r * tile.x_stride + kIntegerGroup * g));
        GRADFLOW_UNROLL
        for (int v = 0; v < kSums; ++v) AddByteProducts(&sums[r][v], group, bytes[v]);
      }
      continue;
    }
#endif
    Pair weights[kSums];
    GRADFLOW_UNROLL
    for (int v = 0; v < kSums; ++v) weights[v] = SignedPair(bytes[v]);
    GRADFLOW_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Pair group =
          UnsignedPair(hn::Set(d, LoadGroup(x + r * tile.x_stride + kIntegerGroup * g)));
      GRADFLOW_UNROLL
      for (int v = 0; v < kSums; ++v) sums[r][v] = AddProducts(sums[r][v], group, weights[v]);
    }
  }
  const int64_t channel = block * kIntegerBlock;
  GRADFLOW_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const int32_t row_sum = tile.row_sums == nullptr ? 0 : tile.row_sums[row + r];
    void* const y = At(tile.y, (row + r) * tile.y_stride + channel - tile.channel, store.is_float);
    GRADFLOW_UNROLL
    for (int v = 0; v < kSums; ++v) {
      const int64_t first = v * kLanes;
      if (n - first >= kLanes) {
        StoreResults(Full(), sums[r][v], channel + first, row_sum, store,
                     At(y, first, store.is_float));
      } else if (n > first) {
        int32_t rest[kLanes];
        hn::StoreU(sums[r][v], d, rest);
        StoreSums(rest, channel + first, n - first, row_sum, store, At(y, first, store.is_float));
      }
    }
  }
}

// Computes the last rows, at most kRows.
template <int kRows, int kBlocks, bool kBytes>
HWY_INLINE void MultiplyRest(const IntegerProductTile& tile, const IntegerStore& store, int64_t row,
                             int64_t block, int64_t n) {
  if constexpr (kRows > 0) {
    if (tile.rows - row == kRows) {
      MultiplyTile<kRows, kBlocks, kBytes>(tile, store, row, block, n);
    } else {
      MultiplyRest<kRows - 1, kBlocks, kBytes>(tile, store, row, block, n);
    }
  }
}

template <int kRows, int kBlocks, bool kBytes>
HWY_INLINE void MultiplyRows(const IntegerProductTile& tile, const IntegerStore& store,
                             int64_t block, int64_t n) {
  int64_t row = 0;
  for (; row + kRows <= tile.rows; row += kRows) {
    MultiplyTile<kRows, kBlocks, kBytes>(tile, store, row, block, n);
  }
  MultiplyRest<kRows - 1, kBlocks, kBytes>(tile, store, row, block, n);
}

// Computes the last blocks, at most kBlocks, for `n` channels.
template <int kRows, int kBlocks, bool kBytes>
HWY_INLINE void MultiplyLastBlocks(const IntegerProductTile& tile, const IntegerStore& store,
                                   int64_t block, int64_t n) {
  if constexpr (kBlocks > 0) {
    if (n > (kBlocks - 1) * kIntegerBlock) {
      MultiplyRows<kRows, kBlocks, kBytes>(tile, store, block, n);
    } else {
      MultiplyLastBlocks<kRows, kBlocks - 1, kBytes>(tile, store, block, n);
    }
  }
}

template <int kRows, int kBlocks, bool kBytes>
HWY_INLINE void MultiplyAll(const IntegerProductTile& tile, const IntegerStore& store) {
  int64_t block = tile.channel / kIntegerBlock;
  int64_t n = tile.channels;
  for (; n > (kBlocks - 1) * kIntegerBlock; n -= kBlocks * kIntegerBlock, block += kBlocks) {
    MultiplyRows<kRows, kBlocks, kBytes>(tile, store, block, n);
  }
  if (n > 0) MultiplyLastBlocks<kRows, kBlocks - 1, kBytes>(tile, store, block, n);
}

void Multiply(const IntegerProductTile& tile, const IntegerStore& store, bool bytes) {
#if GRADFLOW_HAS_BYTE_PRODUCTS
  if (bytes) return MultiplyAll<kIntegerRows, 4, true>(tile, store);
#endif
  // AVX-512 has 32 registers, the other targets 16.
  MultiplyAll<kLanes == 16 ? 4 : 2, kLanes == 16 ? 2 : 1, false>(tile, store);
}

#else

void Multiply(const IntegerProductTile& tile, const IntegerStore& store, bool) {
  const int64_t block_size = tile.groups * kIntegerBlock * kIntegerGroup;
  for (int64_t first = 0; first < tile.channels; first += kIntegerBlock) {
    const int64_t channel = tile.channel + first;
    const int8_t* const weights = tile.weights + channel / kIntegerBlock * block_size;
    const int64_t left = tile.channels - first;
    const int64_t n = left < kIntegerBlock ? left : kIntegerBlock;
    for (int64_t row = 0; row < tile.rows; ++row) {
      const uint8_t* const x = tile.x + row * tile.x_stride;
      const int8_t* w = weights;
      uint32_t sums[kIntegerBlock];
      for (int64_t c = 0; c < kIntegerBlock; ++c) {
        sums[c] = static_cast<uint32_t>(store.sum_offset[channel + c]);
      }
      for (int64_t k = 0; k < tile.groups * kIntegerGroup; k += kIntegerGroup) {
        for (int64_t c = 0; c < kIntegerBlock; ++c, w += kIntegerGroup) {
          int32_t sum = 0;
          for (int64_t i = 0; i < kIntegerGroup; ++i) sum += x[k + i] * w[i];
          sums[c] += static_cast<uint32_t>(sum);
        }
      }
      StoreSums(reinterpret_cast<const int32_t*>(sums), channel, n,
                tile.row_sums == nullptr ? 0 : tile.row_sums[row], store,
                At(tile.y, row * tile.y_stride + first, store.is_float));
    }
  }
}

#endif

// ---- Depthwise convolutions ----

void Depthwise(const DepthwiseRun& run, const IntegerStore& all_stores, void* y) {
  // A copy, which stores of bytes do not change.
  const IntegerStore store = all_stores;
  const DepthwiseRun r = run;
  ForEachVector<int32_t>(r.channels, [&](auto d, int64_t c) HWY_ATTR {
    const hn::Rebind<int16_t, decltype(d)> d16;
    const hn::Rebind<uint8_t, decltype(d)> d8;
    const auto offset = hn::LoadU(d, store.sum_offset + c);
    for (int64_t p = 0; p < r.positions; ++p) {
      auto sums = offset;
      const int64_t at = p * r.step + c;
      const int16_t* w = r.weights + c;
      for (int64_t t = 0; t < r.num_taps; ++t, w += r.channels) {
        // A product of an unsigned and a signed byte fits in 16 bits.
        const auto x = hn::PromoteTo(d16, hn::LoadU(d8, r.taps[t] + at));
        sums = sums + hn::PromoteTo(d, x * hn::LoadU(d16, w));
      }
      StoreResults(hn::Rebind<float, decltype(d)>(), sums, c, 0, store,
                   At(y, p * r.channels + c, store.is_float));
    }
  });
}

}  // namespace

void MultiplyIntegersImpl(const IntegerProductTile& tile, const IntegerStore& store, bool bytes) {
  Multiply(tile, store, bytes);
}
void DepthwiseIntegersImpl(const DepthwiseRun& run, const IntegerStore& store, void* y) {
  Depthwise(run, store, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(MultiplyIntegersImpl);
HWY_EXPORT(DepthwiseIntegersImpl);

void StoreFixedPoint(const int32_t* sums, int64_t c, int64_t n, const IntegerStore& store,
                     uint8_t* y) {
  const auto lowest = static_cast<int32_t>(store.lowest);
  const auto highest = static_cast<int32_t>(store.highest);
  for (int64_t i = 0; i < n; ++i) {
    const FixedPoint factor = store.fixed[c + i];
    const int32_t steps =
        store.rounds_once ? MultiplyOnce(sums[i], factor) : Multiply(sums[i], factor);
    y[i] = static_cast<uint8_t>(std::clamp(steps, lowest, highest) + store.zero_point);
  }
}

bool HasByteProducts() {
#if HWY_ARCH_X86
  static const bool has = __builtin_cpu_supports("avx512vnni") != 0;
  return has;
#else
  return false;
#endif
}

void MultiplyIntegers(const IntegerProductTile& tile, const IntegerStore& store) {
  GRADFLOW_SIMD_DISPATCH(MultiplyIntegersImpl)(tile, store, HasByteProducts());
}

void DepthwiseIntegers(const DepthwiseRun& run, const IntegerStore& store, void* y) {
  GRADFLOW_SIMD_DISPATCH(DepthwiseIntegersImpl)(run, store, y);
}

}  // namespace gradflow
#endif
