// Parallel loops for kernels. They use oneTBB, in the arena of their run.
//
// Loops are split by the amount of work, never by the number of threads. A kernel that keeps one
// partial result per block and combines the partial results in order therefore returns the same
// bits on any number of threads. A thread that waits for its loop runs no other node of the graph.
// With one thread, blocks run in order on the calling thread.
//
// If a run must end (an error elsewhere, a cancellation, a deadline), its loops and all later loops
// skip the blocks that have not begun. The result of a kernel then does not matter, but the kernel
// must not rely on values that a loop should have written.
#ifndef GRADFLOW_CORE_PARALLEL_H_
#define GRADFLOW_CORE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "gradflow/core/run_context.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Calls fn(begin, end) for blocks that cover [0, total), concurrently. Every block except the last
// has `block_size` units. A single block runs on the calling thread, without oneTBB. A loop nested
// in a loop that RunContext::max_loop_threads limits runs on one thread.
// REQUIRES: block_size > 0, and fn does not throw.
void ParallelFor(const RunContext& run, int64_t total, int64_t block_size,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

// Counts the calling thread as a thread of `arena` while this object lives: loops of runs in this
// arena need not enter it. For implementations of LoopArena.
class ScopedArenaMembership {
 public:
  // `arena` must outlive this.
  explicit ScopedArenaMembership(const LoopArena* arena);
  ~ScopedArenaMembership();
  ScopedArenaMembership(const ScopedArenaMembership&) = delete;
  ScopedArenaMembership& operator=(const ScopedArenaMembership&) = delete;

 private:
  const LoopArena* const before_;
};

// Returns a copy of `run` whose loops run on their calling thread.
RunContext SerialLoops(const RunContext& run);

// Returns a block size whose work far exceeds the cost of a task. Each unit takes about
// `nanoseconds_per_unit`.
int64_t BlockSizeForCost(double nanoseconds_per_unit);

// Returns the number of blocks of ParallelFor(run, total, block_size).
inline int64_t NumBlocks(int64_t total, int64_t block_size) {
  return total / block_size + (total % block_size != 0 ? 1 : 0);
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_PARALLEL_H_
