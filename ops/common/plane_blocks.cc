#include "gradflow/ops/common/plane_blocks.h"

#include <algorithm>

#include "gradflow/core/parallel.h"

namespace gradflow {
namespace plane_blocks {

constexpr int64_t kBlockElements = 64 * 1024;
// The minimum number of elements that are worth a task.
constexpr int64_t kTaskElements = 32 * 1024;
// A tile combines small planes of adjacent channels up to this many contiguous elements, because
// prefetchers restart at each run and at each page. A tile of several channels has at most
// kTileElements elements, which fit into a core's cache.
constexpr int64_t kContiguousElements = 4096;
constexpr int64_t kTileElements = 64 * 1024;
// A task runs both passes of a channel of up to this many elements, if there are enough channels to
// keep the threads busy. The second pass then finds its elements in a cache.
constexpr int64_t kMaxCachedElements = 512 * 1024;
constexpr int64_t kMinCachedChannels = 16;

}  // namespace plane_blocks

PlaneBlocks::PlaneBlocks(const RunContext& run, int64_t batch, int64_t channels, int64_t spatial)
    : run_(run),
      batch_(batch),
      channels_(channels),
      spatial_(spatial),
      planes_per_block_(std::max<int64_t>(1, plane_blocks::kBlockElements / spatial)),
      pieces_per_plane_(NumBlocks(spatial, plane_blocks::kBlockElements)),
      num_blocks_(NumBlocks(batch, planes_per_block_) * pieces_per_plane_) {
  const int64_t planes = std::min(batch_, planes_per_block_);
  channels_per_tile_ =
      std::min({plane_blocks::kContiguousElements / spatial_,
                plane_blocks::kTileElements / spatial_ / planes, kMaxChannels, channels_});
  channels_per_tile_ = std::max<int64_t>(1, channels_per_tile_);
}

int64_t PlaneBlocks::Count(int64_t block) const {
  if (pieces_per_plane_ > 1) {
    const int64_t begin = block % pieces_per_plane_ * plane_blocks::kBlockElements;
    return std::min(plane_blocks::kBlockElements, spatial_ - begin);
  }
  const int64_t begin = block * planes_per_block_;
  return std::min(planes_per_block_, batch_ - begin) * spatial_;
}

int64_t PlaneBlocks::NumGroups() const { return NumBlocks(channels_, channels_per_tile_); }

PlaneBlocks::Tile PlaneBlocks::MakeTile(int64_t group, int64_t block) const {
  Tile tile;
  tile.channel = group * channels_per_tile_;
  tile.block = block;
  tile.planes.image_stride = channels_ * spatial_;
  tile.planes.channels = std::min(channels_per_tile_, channels_ - tile.channel);
  tile.planes.channel_stride = spatial_;
  int64_t image = 0;
  int64_t begin = 0;
  if (pieces_per_plane_ > 1) {
    image = block / pieces_per_plane_;
    begin = block % pieces_per_plane_ * plane_blocks::kBlockElements;
    tile.planes.images = 1;
    tile.planes.length = Count(block);
  } else {
    image = block * planes_per_block_;
    tile.planes.images = std::min(planes_per_block_, batch_ - image);
    tile.planes.length = spatial_;
  }
  tile.offset = image * tile.planes.image_stride + tile.channel * spatial_ + begin;
  return tile;
}

void PlaneBlocks::ForEachTile(TileFn fn) const {
  const int64_t per_task =
      std::max<int64_t>(1, plane_blocks::kTaskElements / (Count(0) * channels_per_tile_));
  ParallelFor(run_, NumGroups() * num_blocks_, per_task, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(MakeTile(i / num_blocks_, i % num_blocks_));
  });
}

void PlaneBlocks::InTwoPasses(TileFn first, absl::FunctionRef<void(int64_t channel)> between,
                              TileFn second) const {
  const bool cached = num_blocks_ == 1 || (ChannelSize() <= plane_blocks::kMaxCachedElements &&
                                           channels_ >= plane_blocks::kMinCachedChannels);
  if (cached) {
    const int64_t per_task =
        std::max<int64_t>(1, plane_blocks::kTaskElements / (ChannelSize() * channels_per_tile_));
    ParallelFor(run_, NumGroups(), per_task, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        for (int64_t block = 0; block < num_blocks_; ++block) first(MakeTile(group, block));
        const int64_t channel = group * channels_per_tile_;
        const int64_t end_channel = std::min(channels_, channel + channels_per_tile_);
        for (int64_t c = channel; c < end_channel; ++c) between(c);
        // The last block is the most likely to be still in a cache.
        for (int64_t block = num_blocks_ - 1; block >= 0; --block) second(MakeTile(group, block));
      }
    });
    return;
  }
  ForEachTile(first);
  for (int64_t channel = 0; channel < channels_; ++channel) between(channel);
  ForEachTile(second);
}

}  // namespace gradflow
