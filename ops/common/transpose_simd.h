// Transposition of squares of elements in vectors, with the best instruction set of the processor.
#ifndef GRADFLOW_OPS_COMMON_TRANSPOSE_SIMD_H_
#define GRADFLOW_OPS_COMMON_TRANSPOSE_SIMD_H_

#include <cstdint>

namespace gradflow {

// The number of elements in a cache line, the unit of TransposeLines.
template <typename E>
inline constexpr int64_t kLineElements = 64 / static_cast<int64_t>(sizeof(E));

// Copies from[r * from_row + c] to to[c * to_row + r] for r in [0, rows) and c in [0, columns),
// with non-temporal stores. Call hwy::FlushStream() on the same thread afterwards.
// REQUIRES: rows and columns are multiples of kLineElements, `to` and its rows are aligned to 64
// bytes
void TransposeLines(const uint32_t* from, int64_t from_row, uint32_t* to, int64_t to_row,
                    int64_t rows, int64_t columns);
void TransposeLines(const uint64_t* from, int64_t from_row, uint64_t* to, int64_t to_row,
                    int64_t rows, int64_t columns);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_TRANSPOSE_SIMD_H_
