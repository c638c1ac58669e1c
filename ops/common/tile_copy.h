// The inner loops of strided copies of plain bytes: short rows, and tiles of transpositions.
#ifndef GRADFLOW_OPS_COMMON_TILE_COPY_H_
#define GRADFLOW_OPS_COMMON_TILE_COPY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "gradflow/ops/common/simd.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gradflow {

inline constexpr int64_t kCacheLineBytes = 64;

// Copies a few bytes, inline.
inline void CopyShort(void* to, const void* from, size_t bytes) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  if (bytes > 512 || bytes < 16) {
    std::memcpy(target, source, bytes);
    return;
  }
  // The last move may overlap the previous one.
  for (size_t i = 0; i + 16 < bytes; i += 16) std::memcpy(target + i, source + i, 16);
  std::memcpy(target + bytes - 16, source + bytes - 16, 16);
}

// Copies with non-temporal stores of whole cache lines, which do not read the target first. Call
// StoreFence() on the same thread before other threads read the target.
inline void NonTemporalCopy(void* to, const void* from, size_t bytes) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
#if defined(__SSE2__)
  const size_t misaligned = reinterpret_cast<uintptr_t>(target) % kCacheLineBytes;
  const size_t head = std::min<size_t>(misaligned == 0 ? 0 : kCacheLineBytes - misaligned, bytes);
  if (head > 0) std::memcpy(target, source, head);
  size_t i = head;
  for (; i + kCacheLineBytes <= bytes; i += kCacheLineBytes) {
    for (int k = 0; k < 64; k += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i + k)));
    }
  }
  if (i < bytes) std::memcpy(target + i, source + i, bytes - i);
#else
  std::memcpy(target, source, bytes);
#endif
}
// Makes the non-temporal stores of this thread visible to other threads.
inline void StoreFence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

namespace internal {

// Vectors of 16 bytes, using the vector extension of gcc and clang.
template <typename E>
struct Lanes {
  typedef E Vector __attribute__((vector_size(16)));
  static constexpr int kCount = 16 / sizeof(E);
};

// Returns the lower (Half = 0) or upper (Half = 1) lanes of `a` and `b`, alternating.
template <int Half, typename V, size_t... I>
V Interleave(V a, V b, std::index_sequence<I...>) {
  constexpr int kCount = sizeof...(I);
  return __builtin_shufflevector(a, b, (Half * kCount / 2 + I / 2 + (I % 2) * kCount)...);
}

// Transposes a square of kCount x kCount elements. Strides are in elements.
template <typename E>
void TransposeSquare(const E* from, int64_t from_stride, E* to, int64_t to_stride) {
  constexpr int kCount = Lanes<E>::kCount;
  using V = typename Lanes<E>::Vector;
  constexpr auto kIndices = std::make_index_sequence<kCount>();
  V a[kCount];
  V b[kCount];
  for (int i = 0; i < kCount; ++i) std::memcpy(&a[i], from + i * from_stride, 16);
  // Each step interleaves the first half of the rows with the second.
  for (int step = 1; step < kCount; step *= 2) {
    for (int i = 0; i < kCount / 2; ++i) {
      b[2 * i] = Interleave<0>(a[i], a[i + kCount / 2], kIndices);
      b[2 * i + 1] = Interleave<1>(a[i], a[i + kCount / 2], kIndices);
    }
    for (int i = 0; i < kCount; ++i) a[i] = b[i];
  }
  for (int i = 0; i < kCount; ++i) std::memcpy(to + i * to_stride, &a[i], 16);
}

// Three vectors: rows a, b and c, or, after interleaving, abca, bcab and cabc. Not an array,
// because gcc -O2 would keep an array on the stack.
template <typename V>
struct ThreeVectors {
  V a;
  V b;
  V c;

  // Loads vectors that are `stride` elements apart.
  template <typename E>
  static ThreeVectors Load(const E* from, int64_t stride) {
    ThreeVectors v;
    std::memcpy(&v.a, from, sizeof(V));
    std::memcpy(&v.b, from + stride, sizeof(V));
    std::memcpy(&v.c, from + 2 * stride, sizeof(V));
    return v;
  }
  template <typename E>
  void Store(E* to, int64_t stride) const {
    std::memcpy(to, &a, sizeof(V));
    std::memcpy(to + stride, &b, sizeof(V));
    std::memcpy(to + 2 * stride, &c, sizeof(V));
  }
};
template <typename V>
ThreeVectors<V> Interleaved(const ThreeVectors<V>& v) {
  const V ab = __builtin_shufflevector(v.a, v.b, 0, 4, 1, 5);
  const V ca = __builtin_shufflevector(v.c, v.a, 0, 5, 2, 7);
  const V bc = __builtin_shufflevector(v.b, v.c, 1, 5, 3, 7);
  const V ab_high = __builtin_shufflevector(v.a, v.b, 2, 6, 3, 7);
  return {__builtin_shufflevector(ab, ca, 0, 1, 4, 5),
          __builtin_shufflevector(bc, ab_high, 0, 1, 4, 5),
          __builtin_shufflevector(ca, bc, 2, 3, 6, 7)};
}
template <typename V>
ThreeVectors<V> Deinterleaved(const ThreeVectors<V>& v) {
  const V a23 = __builtin_shufflevector(v.b, v.c, 2, 2, 5, 5);
  const V b01 = __builtin_shufflevector(v.a, v.b, 1, 1, 4, 4);
  const V b23 = __builtin_shufflevector(v.b, v.c, 3, 3, 6, 6);
  const V c01 = __builtin_shufflevector(v.a, v.b, 2, 2, 5, 5);
  return {__builtin_shufflevector(v.a, a23, 0, 3, 4, 6),
          __builtin_shufflevector(b01, b23, 0, 2, 4, 6),
          __builtin_shufflevector(c01, v.c, 0, 2, 4, 7)};
}

// Interleaves kRows rows of `count` elements: to[c * kRows + r] = from[r * from_row + c].
template <int kRows, typename E>
void InterleaveRows(const E* from, int64_t from_row, int64_t count, E* to) {
  int64_t c = 0;
  if constexpr (kRows == 3 && sizeof(E) == 4) {
    using Three = ThreeVectors<typename Lanes<E>::Vector>;
    for (; c + 4 <= count; c += 4) {
      Interleaved(Three::Load(from + c, from_row)).Store(to + c * 3, 4);
    }
  }
  for (; c < count; ++c) {
    for (int r = 0; r < kRows; ++r) to[c * kRows + r] = from[r * from_row + c];
  }
}
// Inverse of InterleaveRows: the rows of the source have kColumns elements.
template <int kColumns, typename E>
void DeinterleaveColumns(const E* from, int64_t rows, E* to) {
  int64_t r = 0;
  if constexpr (kColumns == 3 && sizeof(E) == 4) {
    using Three = ThreeVectors<typename Lanes<E>::Vector>;
    // Hardware prefetchers stop at the end of a page.
    constexpr int64_t kAhead = 4096 / sizeof(E);
    for (; r + 4 <= rows; r += 4) {
      __builtin_prefetch(from + r * 3 + kAhead);
      Deinterleaved(Three::Load(from + r * 3, 4)).Store(to + r, rows);
    }
  }
  for (; r < rows; ++r) {
    for (int c = 0; c < kColumns; ++c) to[c * rows + r] = from[r * kColumns + c];
  }
}

}  // namespace internal

// The target rows of a tile span a few cache lines, which are written whole.
inline constexpr int64_t kMaxTileRowBytes = 1024;
// Returns the maximum number of rows of TransposeTile. Its buffer has room for as many columns as
// fit into a cache line. Tiles with fewer columns can have longer rows: a copy of three channels is
// much faster with rows of a page than with rows of 1 KiB.
template <typename E>
constexpr int64_t MaxTileRows(int64_t columns) {
  constexpr int64_t kElementBytes = sizeof(E);
  return kMaxTileRowBytes / kElementBytes *
         std::clamp<int64_t>(kCacheLineBytes / kElementBytes / columns, 1, 4);
}

// Copies from[r * from_row + c] to to[c * to_row + r] for r in [0, rows) and c in [0, columns). The
// source is contiguous along c, the target along r. If `non_temporal` is true, uses non-temporal
// stores; call StoreFence() afterwards. REQUIRES: rows <= MaxTileRows<E>(columns), columns > 0
template <typename E>
void TransposeTile(const E* from, int64_t from_row, E* to, int64_t to_row, int64_t rows,
                   int64_t columns, bool non_temporal) {
  // The number of elements in a cache line of the source.
  constexpr int64_t kLine = kCacheLineBytes / sizeof(E);
  constexpr int64_t kMaxRows = MaxTileRows<E>(kLine);
  alignas(kCacheLineBytes) E buffer[kLine * kMaxRows];
  if ((rows == 2 || rows == 3) && to_row == rows) {
    // The target is contiguous: interleave a few rows.
    const int64_t step = kLine * kMaxRows / rows;
    for (int64_t begin = 0; begin < columns; begin += step) {
      const int64_t count = std::min(step, columns - begin);
      if (rows == 2) internal::InterleaveRows<2>(from + begin, from_row, count, buffer);
      if (rows == 3) internal::InterleaveRows<3>(from + begin, from_row, count, buffer);
      const size_t bytes = count * rows * sizeof(E);
      non_temporal ? NonTemporalCopy(to + begin * rows, buffer, bytes)
                   : static_cast<void>(std::memcpy(to + begin * rows, buffer, bytes));
    }
    return;
  }
  for (int64_t begin = 0; begin < columns; begin += kLine) {
    const int64_t count = std::min(kLine, columns - begin);
    const E* source = from + begin;
    if (columns == 3 && from_row == 3) {
      internal::DeinterleaveColumns<3>(source, rows, buffer);
    } else if (columns == 2 && from_row == 2) {
      internal::DeinterleaveColumns<2>(source, rows, buffer);
    } else {
      int64_t r = 0;
      if constexpr (sizeof(E) <= 8) {
        constexpr int64_t kSquare = internal::Lanes<E>::kCount;
        for (; r + kSquare <= rows && count >= kSquare; r += kSquare) {
          int64_t c = 0;
          for (; c + kSquare <= count; c += kSquare) {
            internal::TransposeSquare(source + r * from_row + c, from_row, buffer + c * rows + r,
                                      rows);
          }
          for (; c < count; ++c) {
            for (int64_t i = r; i < r + kSquare; ++i) {
              buffer[c * rows + i] = source[i * from_row + c];
            }
          }
        }
      }
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t i = r; i < rows; ++i) buffer[c * rows + i] = source[i * from_row + c];
      }
    }
    E* target = to + begin * to_row;
    for (int64_t c = 0; c < count; ++c, target += to_row) {
      if (non_temporal) {
        NonTemporalCopy(target, buffer + c * rows, rows * sizeof(E));
      } else {
        CopyShort(target, buffer + c * rows, rows * sizeof(E));
      }
    }
  }
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_TILE_COPY_H_
