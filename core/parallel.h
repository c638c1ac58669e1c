// Parallel loops for kernels, over oneTBB in the arena that the kernel runs in.
//
// How the work is split depends on the amount of work alone, never on the number of threads, so
// that a kernel which keeps one partial result a block and combines them in order has the same
// bits on any machine. A loop does not run other nodes of the graph while it waits. With one
// thread, or outside any arena with one, blocks run in order on the calling thread.
//
// When the run that a kernel belongs to is to end (an error elsewhere, a cancellation, a deadline),
// its loops skip the blocks that have not begun, and so do all loops after them: what a kernel
// then returns does not matter, but it must not rely on values that a loop should have written.
#ifndef GRADFLOW_CORE_PARALLEL_H_
#define GRADFLOW_CORE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

#pragma GCC visibility push(default)
namespace gradflow {

class RunStop;

// Calls fn(begin, end) for blocks that cover [0, total), concurrently. Every block but the last
// has `block_size` units. A single block runs on the calling thread, without oneTBB.
// REQUIRES: block_size > 0, and fn does not throw.
void ParallelFor(int64_t total, int64_t block_size,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

// Whether the run that this thread works for is to end. For kernels that are busy for milliseconds
// outside of ParallelFor: they ask now and then, and if so, return whatever status they like.
bool ShouldStop();

// Threads that loops may go to.
class LoopArena {
 public:
  virtual ~LoopArena() = default;
  // Calls fn() on the calling thread, as one of the arena's. False, without a call, if there is no
  // room for it.
  virtual bool Execute(absl::FunctionRef<void()> fn) = 0;
};

// How loops of a thread go.
struct LoopSettings {
  // What ends them early; null for nothing.
  RunStop* stop = nullptr;
  // The most threads that a loop may use, its own among them; 0 for all of the arena. With 1, loops
  // run on their thread alone, in order, without oneTBB.
  int max_threads = 0;
  // Where loops of several blocks take place, which run on their thread alone if there is no room;
  // null for where their thread is.
  LoopArena* arena = nullptr;
};

// While one lives, the loops of its thread go by `settings`.
class ScopedLoopSettings {
 public:
  // Saves the settings of this thread, and puts these in their place.
  explicit ScopedLoopSettings(const LoopSettings& settings);
  ~ScopedLoopSettings();
  ScopedLoopSettings(const ScopedLoopSettings&) = delete;
  ScopedLoopSettings& operator=(const ScopedLoopSettings&) = delete;

 private:
  const LoopSettings before_;
};

// While one lives, the loops of its thread run there alone.
class ScopedSerialLoops {
 public:
  ScopedSerialLoops();

 private:
  const ScopedLoopSettings settings_;
};

// The block size at which a block of units that each cost about `nanoseconds_per_unit` outweighs
// the cost of a task many times.
int64_t BlockSizeForCost(double nanoseconds_per_unit);

// Blocks of ParallelFor(total, block_size).
inline int64_t NumBlocks(int64_t total, int64_t block_size) {
  return total / block_size + (total % block_size != 0 ? 1 : 0);
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_PARALLEL_H_
