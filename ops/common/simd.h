// Selection of the instruction set of SIMD kernels.
//
// Kernels are compiled for several instruction sets and use the best one that the processor
// supports. The environment variable GRADFLOW_SIMD=avx512|avx2|sse4|neon|scalar selects another
// instruction set. It is read before the first kernel runs, and ignored if the processor does not
// support the value. Results have the same bits with all instruction sets; tests check this.
#ifndef GRADFLOW_OPS_COMMON_SIMD_H_
#define GRADFLOW_OPS_COMMON_SIMD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Sums over a contiguous run of elements consist of this many partial sums. Element i is added to
// partial sum i modulo kSumLanes for all vector widths, so the bits are the same on all processors.
inline constexpr int kSumLanes = 16;

// Element types of kernels that take raw pointers. The kernels compute in float.
enum class ElementType { kFloat, kHalf, kBfloat16 };

// Returns the minimum size of results that are faster to write with non-temporal stores. It depends
// on the last-level cache: a smaller result stays in the cache until the next op reads it.
int64_t MinNonTemporalBytes();

// Returns true if non-temporal stores are faster for a result of `bytes` bytes that consists of
// runs of multiples of `run_bytes` bytes. A plain store first reads its cache line, unless the line
// is already in a cache. Small results and results that are written over an input are usually in a
// cache. docs/performance.md has measurements under "details".
//
// A function with non-temporal stores must end with hwy::FlushStream() on the same thread.
inline bool ShouldUseNonTemporalStores(const void* result, bool over_input, int64_t bytes,
                                       int64_t run_bytes = 64) {
  constexpr int64_t kLine = 64;
  return bytes >= MinNonTemporalBytes() && !over_input && run_bytes % kLine == 0 &&
         reinterpret_cast<uintptr_t>(result) % kLine == 0;
}

// Returns the instruction sets that both this build and this processor support, best first.
std::vector<std::string> SimdTargets();

// Returns the instruction set that kernels use now.
std::string CurrentSimdTarget();

// Makes all kernels use the instruction set `name`, one of SimdTargets(); "" restores the default.
// Returns false and changes nothing if the instruction set is not supported. For tests. REQUIRES:
// no kernel is running
bool SetSimdTarget(absl::string_view name);

// Applies GRADFLOW_SIMD on the first call. Every dispatch to a target calls this function.
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
