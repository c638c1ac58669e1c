// Divides a tensor [batch, channels, spatial], whose channels are contiguous planes of `spatial`
// elements, into shards. A shard is a block of planes, or a piece of a plane, of one channel and
// has its own sums. Shards run in parallel. All sizes depend only on the shape, and so do the bits
// of the results.
#ifndef GRADFLOW_OPS_COMMON_PLANE_BLOCKS_H_
#define GRADFLOW_OPS_COMMON_PLANE_BLOCKS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace gradflow {

struct RunContext;

// Runs of `length` contiguous elements, one per image and channel.
struct Planes {
  int64_t images;
  int64_t image_stride;
  int64_t channels;
  int64_t channel_stride;
  int64_t length;
};

class PlaneBlocks {
 public:
  // The maximum number of channels in a tile.
  static constexpr int64_t kMaxChannels = 32;

  // The same block of several adjacent channels. A kernel processes several small planes at a time.
  struct Tile {
    int64_t channel;
    int64_t block;
    // The index of the first element in the tensor.
    int64_t offset;
    Planes planes;
  };
  using TileFn = absl::FunctionRef<void(const Tile& tile)>;

  // REQUIRES: all arguments are > 0
  PlaneBlocks(const RunContext& run, int64_t batch, int64_t channels, int64_t spatial);

  const RunContext& run() const { return run_; }
  int64_t num_blocks() const { return num_blocks_; }
  // The number of elements of one channel in a block.
  int64_t Count(int64_t block) const;
  // Calls fn for every tile, concurrently.
  void ForEachTile(TileFn fn) const;
  // For each channel, calls `first` for its tiles, then `between`, then `second` for its tiles.
  // Channels run concurrently; the blocks of a large channel run concurrently as well. If a channel
  // fits into the cache, `second` finds its elements there.
  void InTwoPasses(TileFn first, absl::FunctionRef<void(int64_t channel)> between,
                   TileFn second) const;

 private:
  int64_t ChannelSize() const { return batch_ * spatial_; }
  int64_t NumGroups() const;
  Tile MakeTile(int64_t group, int64_t block) const;

  const RunContext& run_;
  int64_t batch_;
  int64_t channels_;
  int64_t spatial_;
  // A block is either several planes or one piece of a plane.
  int64_t planes_per_block_;
  int64_t pieces_per_plane_;
  int64_t num_blocks_;
  int64_t channels_per_tile_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_PLANE_BLOCKS_H_
