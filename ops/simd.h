// Which instruction set the SIMD kernels of this folder use.
//
// They are compiled for several and take the best that the processor has. The environment variable
// GRADFLOW_SIMD=avx512|avx2|sse4|scalar, read before the first kernel runs, chooses another one:
// results have the same bits on all of them, and tests check that.
#ifndef GRADFLOW_OPS_SIMD_H_
#define GRADFLOW_OPS_SIMD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Sums over a contiguous run of elements are kept as this many partial sums, element i going to
// number i modulo kSumLanes, whatever the width of the vectors; that makes their bits the same
// everywhere.
inline constexpr int kSumLanes = 16;

// The elements that kernels over raw pointers read and write; they compute in float.
enum class ElementType { kFloat, kHalf, kBfloat16 };

// Whether a result of `bytes` bytes, in runs of multiples of `run_bytes`, is best stored past the
// caches ("streamed"). A plain store reads its line first, unless the line is in a cache, which it
// is for a small result and for one that is written over an input. A triad whose result is
// streamed took 0.76, 0.65 and 0.60 of the time for 4, 16 and 64 MiB on one thread, and 0.76, 0.65
// and 0.53 on two; for 1 MiB up to 1.4. Whoever streams ends with hwy::FlushStream(),
// on the same thread.
inline bool StreamsTo(const void* result, bool over_input, int64_t bytes, int64_t run_bytes = 64) {
  constexpr int64_t kMinBytes = 4 << 20;
  constexpr int64_t kLine = 64;
  return bytes >= kMinBytes && !over_input && run_bytes % kLine == 0 &&
         reinterpret_cast<uintptr_t>(result) % kLine == 0;
}

// The instruction sets that this processor has kernels for, the best one first.
std::vector<std::string> SimdTargets();

// The one that kernels use now.
std::string CurrentSimdTarget();

// Makes all kernels use one of SimdTargets(), or, for "", what they would use by themselves. False,
// and nothing changed, if there is no such target. For tests: no kernel may be running.
bool SetSimdTarget(absl::string_view name);

// Obeys GRADFLOW_SIMD, the first time it is called. Every dispatch to a target calls it.
void ApplySimdSwitch();

// The sum of kSumLanes partial sums, always in the same order.
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

#endif  // GRADFLOW_OPS_SIMD_H_
