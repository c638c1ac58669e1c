#include "gradflow/ops/random/philox_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/random/philox_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

using Words = hn::ScalableTag<uint32_t>;
using Word = V<Words>;

// Sets *high and *low to the halves of the products of the lanes of `x` and `factor`.
HWY_INLINE void Multiply(Word x, Word factor, Word* high, Word* low) {
#if HWY_TARGET == HWY_SCALAR
  // The scalar target has no vectors of wider elements.
  const uint64_t product = uint64_t{x.raw} * factor.raw;
  *low = Word(static_cast<uint32_t>(product));
  *high = Word(static_cast<uint32_t>(product >> 32));
#else
  const Words d;
  const hn::Repartition<uint64_t, Words> wide;
  const auto even = hn::MulEven(x, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), factor);
  *low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  *high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
#endif
}

void NumbersLoop(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint32_t* numbers) {
  const Words d;
  constexpr int64_t kLanes = hn::MaxLanes(Words());
  alignas(64) uint32_t counters[4][kLanes];
  alignas(64) uint32_t last[4 * kLanes];
  const Word factor0 = hn::Set(d, 0xD2511F53);
  const Word factor1 = hn::Set(d, 0xCD9E8D57);
  for (int64_t begin = 0; begin < n; begin += kLanes) {
    const uint32_t low32 = static_cast<uint32_t>(low);
    Word x0 = hn::Iota(d, low32);
    Word x1 = hn::Set(d, static_cast<uint32_t>(low >> 32));
    Word x2 = hn::Set(d, static_cast<uint32_t>(high));
    Word x3 = hn::Set(d, static_cast<uint32_t>(high >> 32));
    if (low32 <= UINT32_MAX - kLanes) {
      low += kLanes;
    } else {
      // The lowest 32 bits of the counters overflow.
      for (int64_t i = 0; i < kLanes; ++i) {
        counters[0][i] = static_cast<uint32_t>(low);
        counters[1][i] = static_cast<uint32_t>(low >> 32);
        counters[2][i] = static_cast<uint32_t>(high);
        counters[3][i] = static_cast<uint32_t>(high >> 32);
        low += 1;
        high += low == 0 ? 1 : 0;
      }
      x0 = hn::Load(d, counters[0]);
      x1 = hn::Load(d, counters[1]);
      x2 = hn::Load(d, counters[2]);
      x3 = hn::Load(d, counters[3]);
    }
    uint32_t key0 = static_cast<uint32_t>(key);
    uint32_t key1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      Word high0, low0, high1, low1;
      Multiply(x0, factor0, &high0, &low0);
      Multiply(x2, factor1, &high1, &low1);
      x0 = hn::Xor(hn::Xor(high1, x1), hn::Set(d, key0));
      x1 = low1;
      x2 = hn::Xor(hn::Xor(high0, x3), hn::Set(d, key1));
      x3 = low0;
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    if (begin + kLanes <= n) {
      hn::StoreInterleaved4(x0, x1, x2, x3, d, numbers + 4 * begin);
      continue;
    }
    hn::StoreInterleaved4(x0, x1, x2, x3, d, last);
    for (int64_t i = 0; i < 4 * (n - begin); ++i) numbers[4 * begin + i] = last[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gradflow {

HWY_EXPORT(NumbersLoop);

void PhiloxNumbers(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint32_t* numbers) {
  GRADFLOW_SIMD_DISPATCH(NumbersLoop)(key, low, high, n, numbers);
}

}  // namespace gradflow

#endif  // HWY_ONCE
