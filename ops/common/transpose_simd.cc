#include "gradflow/ops/common/transpose_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradflow/ops/common/transpose_simd.cc"
#include "gradflow/ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
template <class D, typename T>
HWY_INLINE void TransposeSquare(D, const T* from, int64_t, T* to, int64_t) {
  *to = *from;
}
#else

// The number of 16-byte blocks in a vector.
template <class D>
constexpr int kBlocks = HWY_MAX(static_cast<int>(hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16),
                                1);

// Transposes the blocks of kBlocks vectors: block b of vector k becomes block k of vector b. Vector
// k is v[k * kStride].
template <class D, int kStride>
HWY_INLINE void TransposeBlocks([[maybe_unused]] D d, [[maybe_unused]] hn::Vec<D>* v) {
#if HWY_MAX_BYTES >= 64
  if constexpr (kBlocks<D> == 4) {
    const auto even01 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[kStride]), v[0]);
    const auto odd01 = hn::OddEvenBlocks(v[kStride], hn::SwapAdjacentBlocks(v[0]));
    const auto even23 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[3 * kStride]), v[2 * kStride]);
    const auto odd23 = hn::OddEvenBlocks(v[3 * kStride], hn::SwapAdjacentBlocks(v[2 * kStride]));
    v[0] = hn::ConcatLowerLower(d, even23, even01);
    v[kStride] = hn::ConcatLowerLower(d, odd23, odd01);
    v[2 * kStride] = hn::ConcatUpperUpper(d, even23, even01);
    v[3 * kStride] = hn::ConcatUpperUpper(d, odd23, odd01);
  }
#endif
#if HWY_MAX_BYTES >= 32
  if constexpr (kBlocks<D> == 2) {
    const auto lower = hn::ConcatLowerLower(d, v[kStride], v[0]);
    v[kStride] = hn::ConcatUpperUpper(d, v[kStride], v[0]);
    v[0] = lower;
  }
#endif
}

// Transposes a square whose side is the number of lanes of a vector.
template <class D, typename T>
HWY_INLINE void TransposeSquare(D d, const T* from, int64_t from_row, T* to, int64_t to_row) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  constexpr int kInBlock = kLanes / kBlocks<D>;
  hn::Vec<D> v[kLanes];
  GRADFLOW_UNROLL
  for (int i = 0; i < kLanes; ++i) v[i] = hn::LoadU(d, from + i * from_row);
  if constexpr (kInBlock > 1) {
    // Rows of a group exchange lanes within blocks: first rows kInBlock / 2 apart, then adjacent
    // rows.
    GRADFLOW_UNROLL
    for (int g = 0; g < kLanes; g += kInBlock) {
      if constexpr (kInBlock == 2) {
        const auto low = hn::InterleaveLower(d, v[g], v[g + 1]);
        v[g + 1] = hn::InterleaveUpper(d, v[g], v[g + 1]);
        v[g] = low;
      } else {
        const auto low02 = hn::InterleaveLower(d, v[g], v[g + 2]);
        const auto up02 = hn::InterleaveUpper(d, v[g], v[g + 2]);
        const auto low13 = hn::InterleaveLower(d, v[g + 1], v[g + 3]);
        const auto up13 = hn::InterleaveUpper(d, v[g + 1], v[g + 3]);
        v[g] = hn::InterleaveLower(d, low02, low13);
        v[g + 1] = hn::InterleaveUpper(d, low02, low13);
        v[g + 2] = hn::InterleaveLower(d, up02, up13);
        v[g + 3] = hn::InterleaveUpper(d, up02, up13);
      }
    }
  }
  GRADFLOW_UNROLL
  for (int i = 0; i < kInBlock; ++i) TransposeBlocks<D, kInBlock>(d, v + i);
  // v[i] has column i of the square.
  GRADFLOW_UNROLL
  for (int i = 0; i < kLanes; ++i) hn::Stream(v[i], d, to + i * to_row);
}

#endif

template <typename T>
HWY_INLINE void TransposeAll(const T* from, int64_t from_row, T* to, int64_t to_row, int64_t rows,
                             int64_t columns) {
  constexpr int64_t kLine = kLineElements<T>;
  // The prefetch distance along a source row. The processor's own prefetchers follow fewer streams
  // than a tile has rows.
  constexpr int64_t kAhead = 4 * kLine;
  const hn::CappedTag<T, kLine> d;
  constexpr int64_t kSide = static_cast<int64_t>(hn::MaxLanes(d));
  for (int64_t c = 0; c < columns; c += kLine) {
    for (int64_t r = 0; r < rows; r += kLine) {
      const T* const line = from + r * from_row + c;
      if (c + kAhead < columns) {
        for (int64_t i = 0; i < kLine; ++i) hwy::Prefetch(line + i * from_row + kAhead);
      }
      // The squares of one target line follow each other, so that the line is written whole.
      for (int64_t i = 0; i < kLine; i += kSide) {
        for (int64_t k = 0; k < kLine; k += kSide) {
          TransposeSquare(d, line + k * from_row + i, from_row, to + (c + i) * to_row + r + k,
                          to_row);
        }
      }
    }
  }
}

void TransposeLines32(const uint32_t* from, int64_t from_row, uint32_t* to, int64_t to_row,
                      int64_t rows, int64_t columns) {
  TransposeAll(from, from_row, to, to_row, rows, columns);
}
void TransposeLines64(const uint64_t* from, int64_t from_row, uint64_t* to, int64_t to_row,
                      int64_t rows, int64_t columns) {
  TransposeAll(from, from_row, to, to_row, rows, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(TransposeLines32);
HWY_EXPORT(TransposeLines64);

void TransposeLines(const uint32_t* from, int64_t from_row, uint32_t* to, int64_t to_row,
                    int64_t rows, int64_t columns) {
  GRADFLOW_SIMD_DISPATCH(TransposeLines32)(from, from_row, to, to_row, rows, columns);
}
void TransposeLines(const uint64_t* from, int64_t from_row, uint64_t* to, int64_t to_row,
                    int64_t rows, int64_t columns) {
  GRADFLOW_SIMD_DISPATCH(TransposeLines64)(from, from_row, to, to_row, rows, columns);
}

}  // namespace gradflow
#endif
