#include "gradflow/core/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "gradflow/core/tsan.h"

namespace gradflow {
namespace {

// The arena that the calling thread is in, and whether it runs a block of a limited loop. The
// defaults are always safe: the thread then enters the arena, or shares its loop with other
// threads.
thread_local const LoopArena* current_arena = nullptr;
thread_local bool in_limited_loop = false;

// Sets the state of a thread that runs blocks of a loop.
class ScopedBlock {
 public:
  ScopedBlock(const LoopArena* arena, bool limited)
      : arena_(arena), limited_before_(std::exchange(in_limited_loop, limited)) {}
  ~ScopedBlock() { in_limited_loop = limited_before_; }

 private:
  const ScopedArenaMembership arena_;
  const bool limited_before_;
};

// Calls run(begin, end) for ranges that cover [0, blocks), on at most `max_threads` threads of the
// arena if `max_threads` is not 0.
template <typename F>
void RunOnThreads(int64_t blocks, int max_threads, const F& run) {
  if (max_threads == 0) {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, blocks),
                      [&](const tbb::blocked_range<int64_t>& range)
                          GRADFLOW_NO_TSAN { run(range.begin(), range.end()); });
    return;
  }
  // Each thread runs a task, which takes a block at a time.
  std::atomic<int64_t> next{0};
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, std::min<int64_t>(blocks, max_threads)),
      [&](const tbb::blocked_range<int64_t>&) GRADFLOW_NO_TSAN {
        for (;;) {
          const int64_t block = next.fetch_add(1, std::memory_order_relaxed);
          if (block >= blocks) return;
          run(block, block + 1);
        }
      },
      tbb::simple_partitioner());
}

}  // namespace

ScopedArenaMembership::ScopedArenaMembership(const LoopArena* arena)
    : before_(std::exchange(current_arena, arena)) {}
ScopedArenaMembership::~ScopedArenaMembership() { current_arena = before_; }

RunContext SerialLoops(const RunContext& run) {
  RunContext serial = run;
  serial.max_loop_threads = 1;
  return serial;
}

void ParallelFor(const RunContext& run, int64_t total, int64_t block_size,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  if (total <= 0) return;
  StopToken* const stop = run.stop;
  const int64_t blocks = NumBlocks(total, block_size);
  if (blocks == 1) {
    // Does not read the clock, so that a deadline costs small loops nothing.
    if (stop == nullptr || !stop->IsStopped()) fn(0, total);
    return;
  }
  const auto run_blocks = [&](int64_t first, int64_t end) {
    for (int64_t block = first; block < end; ++block) {
      if (IsStopped(stop)) return;
      const int64_t begin = block * block_size;
      fn(begin, std::min(total - begin, block_size) + begin);
    }
  };
  if (run.max_loop_threads == 1 || in_limited_loop) return run_blocks(0, blocks);
  if (run.arena != nullptr && run.arena != current_arena) {
    const bool entered = run.arena->Execute([&] { ParallelFor(run, total, block_size, fn); });
    if (!entered) run_blocks(0, blocks);
    return;
  }
  const int arena_threads = tbb::this_task_arena::max_concurrency();
  if (arena_threads == 1) return run_blocks(0, blocks);
  const bool limited = run.max_loop_threads > 0 && run.max_loop_threads < arena_threads;
  const LoopArena* const arena = current_arena;
  // Isolated, so that a thread that waits for its blocks runs no other node of the graph: the other
  // node could take long, and the stack would grow with every such node.
  char fork = 0;
  char join = 0;
  TsanRelease(&fork);
  tbb::this_task_arena::isolate([&] {
    RunOnThreads(blocks, limited ? run.max_loop_threads : 0,
                 [&](int64_t begin, int64_t end) GRADFLOW_NO_TSAN {
                   TsanAcquire(&fork);
                   const ScopedBlock block(arena, limited);
                   run_blocks(begin, end);
                   TsanRelease(&join);
                 });
  });
  TsanAcquire(&join);
}

int64_t BlockSizeForCost(double nanoseconds_per_unit) {
  // A block takes many times longer than oneTBB needs to spawn a task.
  constexpr double kBlockNanoseconds = 20000;
  return std::max<int64_t>(
      1, static_cast<int64_t>(kBlockNanoseconds / std::max(nanoseconds_per_unit, 0.01)));
}

}  // namespace gradflow
