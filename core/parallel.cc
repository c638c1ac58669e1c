#include "gradflow/core/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "gradflow/core/run_stop.h"
#include "gradflow/core/tsan.h"

namespace gradflow {
namespace {

thread_local LoopSettings loop_settings;

// Calls run(begin, end) for ranges that cover [0, blocks), on at most `max_threads` threads of the
// arena if that is not 0.
template <typename F>
void RunOnThreads(int64_t blocks, int max_threads, const F& run) {
  if (max_threads == 0) {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, blocks),
                      [&](const tbb::blocked_range<int64_t>& range)
                          GRADFLOW_NO_TSAN { run(range.begin(), range.end()); });
    return;
  }
  // One task a thread, each of which takes a block at a time.
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

ScopedLoopSettings::ScopedLoopSettings(const LoopSettings& settings)
    : before_(std::exchange(loop_settings, settings)) {}
ScopedLoopSettings::~ScopedLoopSettings() { loop_settings = before_; }

ScopedSerialLoops::ScopedSerialLoops() : settings_({loop_settings.stop, 1}) {}

bool ShouldStop() {
  RunStop* const stop = loop_settings.stop;
  return stop != nullptr && stop->Check();
}

void ParallelFor(int64_t total, int64_t block_size,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  if (total <= 0) return;
  const LoopSettings settings = loop_settings;
  RunStop* const stop = settings.stop;
  const int64_t blocks = NumBlocks(total, block_size);
  if (blocks == 1) {
    // Not even the clock is looked at, so that a deadline costs small loops nothing.
    if (stop == nullptr || !stop->IsStopped()) fn(0, total);
    return;
  }
  const auto run_blocks = [&](int64_t first, int64_t end) {
    for (int64_t block = first; block < end; ++block) {
      if (stop != nullptr && stop->Check()) return;
      const int64_t begin = block * block_size;
      fn(begin, std::min(total - begin, block_size) + begin);
    }
  };
  if (settings.arena != nullptr && settings.max_threads != 1) {
    const bool entered = settings.arena->Execute([&] {
      const ScopedLoopSettings inside({stop, settings.max_threads});
      ParallelFor(total, block_size, fn);
    });
    if (!entered) run_blocks(0, blocks);
    return;
  }
  const int arena_threads = tbb::this_task_arena::max_concurrency();
  if (settings.max_threads == 1 || arena_threads == 1) {
    run_blocks(0, blocks);
    return;
  }
  const bool limited = settings.max_threads > 0 && settings.max_threads < arena_threads;
  // Isolated, so that a thread which waits for its blocks takes no other node of the graph: that
  // node could be long, and the stack would grow with each.
  char fork = 0;
  char join = 0;
  TsanRelease(&fork);
  tbb::this_task_arena::isolate([&] {
    RunOnThreads(blocks, limited ? settings.max_threads : 0,
                 [&](int64_t begin, int64_t end) GRADFLOW_NO_TSAN {
                   TsanAcquire(&fork);
                   // A loop inside of a block that has to share its threads has one of them.
                   const ScopedLoopSettings scope({stop, limited ? 1 : 0});
                   run_blocks(begin, end);
                   TsanRelease(&join);
                 });
  });
  TsanAcquire(&join);
}

int64_t BlockSizeForCost(double nanoseconds_per_unit) {
  // Splitting off a task costs oneTBB under a microsecond; a block of 20 hides that.
  constexpr double kBlockNanoseconds = 20000;
  return std::max<int64_t>(
      1, static_cast<int64_t>(kBlockNanoseconds / std::max(nanoseconds_per_unit, 0.01)));
}

}  // namespace gradflow
