#include "gradflow/core/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <utility>

#include "gradflow/core/tsan.h"

namespace gradflow {
namespace {

thread_local bool serial_loops = false;

}  // namespace

ScopedSerialLoops::ScopedSerialLoops() : before_(std::exchange(serial_loops, true)) {}
ScopedSerialLoops::~ScopedSerialLoops() { serial_loops = before_; }

void ParallelFor(int64_t total, int64_t block_size,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  if (total <= 0) return;
  const int64_t blocks = NumBlocks(total, block_size);
  const auto run_block = [&](int64_t block) {
    const int64_t begin = block * block_size;
    fn(begin, std::min(total - begin, block_size) + begin);
  };
  if (blocks == 1 || serial_loops || tbb::this_task_arena::max_concurrency() == 1) {
    for (int64_t block = 0; block < blocks; ++block) run_block(block);
    return;
  }
  // Isolated, so that a thread which waits for its blocks takes no other node of the graph: that
  // node could be long, and the stack would grow with each.
  char fork = 0;
  char join = 0;
  TsanRelease(&fork);
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, blocks),
                      [&](const tbb::blocked_range<int64_t>& range) GRADFLOW_NO_TSAN {
                        TsanAcquire(&fork);
                        for (int64_t block = range.begin(); block < range.end(); ++block) {
                          run_block(block);
                        }
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
