// Parallel loops for kernels, over oneTBB in the arena that the kernel runs in.
//
// How the work is split depends on the amount of work alone, never on the number of threads, so
// that a kernel which keeps one partial result a block and combines them in order has the same
// bits on any machine. A loop does not run other nodes of the graph while it waits. With one
// thread, or outside any arena with one, blocks run in order on the calling thread.
#ifndef GRADFLOW_CORE_PARALLEL_H_
#define GRADFLOW_CORE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace gradflow {

// Calls fn(begin, end) for blocks that cover [0, total), concurrently. Every block but the last
// has `block_size` units. A single block runs on the calling thread, without oneTBB.
// REQUIRES: block_size > 0, and fn does not throw.
void ParallelFor(int64_t total, int64_t block_size,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

// While one lives, the loops of its thread run there alone, in order, without oneTBB.
class ScopedSerialLoops {
 public:
  ScopedSerialLoops();
  ~ScopedSerialLoops();
  ScopedSerialLoops(const ScopedSerialLoops&) = delete;
  ScopedSerialLoops& operator=(const ScopedSerialLoops&) = delete;

 private:
  const bool before_;
};

// The block size at which a block of units that each cost about `nanoseconds_per_unit` outweighs
// the cost of a task many times.
int64_t BlockSizeForCost(double nanoseconds_per_unit);

// Blocks of ParallelFor(total, block_size).
inline int64_t NumBlocks(int64_t total, int64_t block_size) {
  return total / block_size + (total % block_size != 0 ? 1 : 0);
}

}  // namespace gradflow

#endif  // GRADFLOW_CORE_PARALLEL_H_
