// Selection of the instruction set of SIMD kernels.
//
// Kernels are compiled for several instruction sets, and use the best that the processor supports.
// The environment variable GRADFLOW_SIMD=avx512|avx2|sse4|neon|scalar selects another one. It is
// read before the first kernel runs. Results have the same bits on all of them; tests check this.
#ifndef GRADFLOW_OPS_COMMON_SIMD_H_
#define GRADFLOW_OPS_COMMON_SIMD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Sums over a contiguous run of elements are kept as this many partial sums. Element i goes to
// number i modulo kSumLanes, whatever the width of the vectors, which makes their bits the same
// everywhere.
inline constexpr int kSumLanes = 16;

// The elements that kernels over raw pointers read and write; they compute in float.
enum class ElementType { kFloat, kHalf, kBfloat16 };

// The size of a result from which on non-temporal stores pay off.
inline constexpr int64_t kMinNonTemporalBytes = int64_t{4} << 20;

// Returns true if a result of `bytes` bytes, in runs of multiples of `run_bytes`, is best written
// with non-temporal stores. A plain store reads its line first unless the line is in a cache, which
// it is for a small result and for one that is written over an input. Non-temporal stores make a
// triad faster from 4 MiB on, and slower for 1 MiB. docs/performance.md has the figures, under
// "details".
//
// A function with non-temporal stores ends with hwy::FlushStream(), on the same thread.
inline bool ShouldUseNonTemporalStores(const void* result, bool over_input, int64_t bytes,
                                       int64_t run_bytes = 64) {
  constexpr int64_t kLine = 64;
  return bytes >= kMinNonTemporalBytes && !over_input && run_bytes % kLine == 0 &&
         reinterpret_cast<uintptr_t>(result) % kLine == 0;
}

// Returns the instruction sets that this processor has kernels for, the best one first.
std::vector<std::string> SimdTargets();

// Returns the one that kernels use now.
std::string CurrentSimdTarget();

// Makes all kernels use one of SimdTargets(), or, for "", what they would use by themselves.
// Returns false and changes nothing if there is no such target. For tests. REQUIRES: no kernel is
// running
bool SetSimdTarget(absl::string_view name);

// Applies GRADFLOW_SIMD when it is first called. Every dispatch to a target calls it.
void ApplySimdSwitch();

// Returns the sum of kSumLanes partial sums, always in the same order.
inline double SumOfLanes(const double* lanes) {
  double sums[kSumLanes / 2];
  for (int i = 0; i < kSumLanes / 2; ++i) sums[i] = lanes[i] + lanes[i + kSumLanes / 2];
  for (int width = kSumLanes / 4; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_OPS_COMMON_SIMD_H_
