#include "gradflow/ops/plane_blocks.h"

#include <algorithm>

#include "gradflow/core/parallel.h"

namespace gradflow {
namespace {

constexpr int64_t kBlockElements = 64 * 1024;
// Less than this is not worth a task.
constexpr int64_t kTaskElements = 32 * 1024;
// Channels of this size go through both passes at once, if there are enough of them to keep
// threads busy: what the first pass has read is still in a cache.
constexpr int64_t kMaxCachedElements = 512 * 1024;
constexpr int64_t kMinCachedChannels = 16;

}  // namespace

PlaneBlocks::PlaneBlocks(int64_t batch, int64_t channels, int64_t spatial)
    : batch_(batch),
      channels_(channels),
      spatial_(spatial),
      planes_per_block_(std::max<int64_t>(1, kBlockElements / spatial)),
      pieces_per_plane_(NumBlocks(spatial, kBlockElements)),
      num_blocks_(NumBlocks(batch, planes_per_block_) * pieces_per_plane_) {}

int64_t PlaneBlocks::Count(int64_t block) const {
  if (pieces_per_plane_ > 1) {
    const int64_t begin = block % pieces_per_plane_ * kBlockElements;
    return std::min(kBlockElements, spatial_ - begin);
  }
  const int64_t begin = block * planes_per_block_;
  return std::min(planes_per_block_, batch_ - begin) * spatial_;
}

void PlaneBlocks::ForEachRun(int64_t channel, int64_t block,
                             absl::FunctionRef<void(int64_t offset, int64_t count)> fn) const {
  if (pieces_per_plane_ > 1) {
    const int64_t plane = block / pieces_per_plane_ * channels_ + channel;
    const int64_t begin = block % pieces_per_plane_ * kBlockElements;
    fn(plane * spatial_ + begin, Count(block));
    return;
  }
  const int64_t begin = block * planes_per_block_;
  const int64_t end = std::min(batch_, begin + planes_per_block_);
  for (int64_t n = begin; n < end; ++n) fn((n * channels_ + channel) * spatial_, spatial_);
}

void PlaneBlocks::ForEachBlock(BlockFn fn) const {
  const int64_t per_task = std::max<int64_t>(1, kTaskElements / Count(0));
  ParallelFor(channels_ * num_blocks_, per_task, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i / num_blocks_, i % num_blocks_);
  });
}

void PlaneBlocks::InTwoPasses(BlockFn first, absl::FunctionRef<void(int64_t channel)> between,
                              BlockFn second) const {
  const bool cached =
      num_blocks_ == 1 || (ChannelSize() <= kMaxCachedElements && channels_ >= kMinCachedChannels);
  if (cached) {
    const int64_t per_task = std::max<int64_t>(1, kTaskElements / ChannelSize());
    ParallelFor(channels_, per_task, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        for (int64_t block = 0; block < num_blocks_; ++block) first(channel, block);
        between(channel);
        for (int64_t block = 0; block < num_blocks_; ++block) second(channel, block);
      }
    });
    return;
  }
  ForEachBlock(first);
  for (int64_t channel = 0; channel < channels_; ++channel) between(channel);
  ForEachBlock(second);
}

}  // namespace gradflow
