// How kernels go through a tensor [batch, channels, spatial], whose channels are contiguous planes
// of `spatial` elements: in blocks of one channel's planes that run in parallel and have sums of
// their own. All sizes, and so the bits of the results, depend on the shape alone.
#ifndef GRADFLOW_OPS_PLANE_BLOCKS_H_
#define GRADFLOW_OPS_PLANE_BLOCKS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace gradflow {

// Runs of `length` contiguous elements, one for each of some images and channels.
struct Planes {
  int64_t images;
  int64_t image_stride;
  int64_t channels;
  int64_t channel_stride;
  int64_t length;
};

class PlaneBlocks {
 public:
  // Channels in a tile.
  static constexpr int64_t kMaxChannels = 32;

  // The same block of some adjacent channels: of small planes, a kernel takes several at a time.
  struct Tile {
    int64_t channel;
    int64_t block;
    // In the tensor, where its first element is.
    int64_t offset;
    Planes planes;
  };
  using TileFn = absl::FunctionRef<void(const Tile& tile)>;

  // REQUIRES: all > 0
  PlaneBlocks(int64_t batch, int64_t channels, int64_t spatial);

  int64_t num_blocks() const { return num_blocks_; }
  // Elements of one channel in a block.
  int64_t Count(int64_t block) const;
  // Calls fn for every tile, concurrently.
  void ForEachTile(TileFn fn) const;
  // For each channel: `first` for its tiles, then `between`, then `second` for its tiles. Channels
  // run concurrently, and long ones in several blocks at a time; where a channel fits into the
  // cache, `second` finds it there.
  void InTwoPasses(TileFn first, absl::FunctionRef<void(int64_t channel)> between,
                   TileFn second) const;

 private:
  int64_t ChannelSize() const { return batch_ * spatial_; }
  int64_t NumGroups() const;
  Tile MakeTile(int64_t group, int64_t block) const;

  int64_t batch_;
  int64_t channels_;
  int64_t spatial_;
  // A block is either some planes, or one of several pieces of a plane.
  int64_t planes_per_block_;
  int64_t pieces_per_plane_;
  int64_t num_blocks_;
  int64_t channels_per_tile_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_PLANE_BLOCKS_H_
