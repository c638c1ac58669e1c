// Elementwise loops that make several passes over chunks that stay in the L1 cache:
//
//   template <typename T>
//   void FloorDivLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
//     ForEachChunk<T, T, 2>(x, strides, out, n, [&](const T* const* a, T* result, int64_t count) {
//       ... reads a[k][0] or a[k][i] for i < count, and writes result[i] ...
//     });
//   }
#ifndef GRADFLOW_OPS_COMMON_ELEMENTWISE_CHUNKS_H_
#define GRADFLOW_OPS_COMMON_ELEMENTWISE_CHUNKS_H_

#include <algorithm>
#include <cstdint>

#include "gradflow/ops/common/elementwise.h"

namespace gradflow {

// Calls f(operands, result, count) for chunks of at most kElementwiseChunk elements.
template <typename In, typename Out, int kInputs, typename F>
void ForEachChunk(const void* const* x, const int64_t* strides, void* out, int64_t n, F f) {
  for (int64_t i = 0; i < n; i += kElementwiseChunk) {
    const In* operands[kInputs];
    for (int k = 0; k < kInputs; ++k) operands[k] = static_cast<const In*>(x[k]) + i * strides[k];
    f(operands, static_cast<Out*>(out) + i, std::min(kElementwiseChunk, n - i));
  }
}

// Returns `count` elements of an operand: `x` itself, or `buffer` filled with the single element if
// the stride is 0.
template <typename T>
const T* Repeated(const T* x, int64_t stride, int64_t count, T* buffer) {
  if (stride != 0) return x;
  std::fill_n(buffer, count, *x);
  return buffer;
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTWISE_CHUNKS_H_
