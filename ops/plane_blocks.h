// How kernels go through a tensor [batch, channels, spatial], whose channels are contiguous planes
// of `spatial` elements: in blocks of one channel's planes that run in parallel and have sums of
// their own. All sizes, and so the bits of the results, depend on the shape alone.
#ifndef GRADFLOW_OPS_PLANE_BLOCKS_H_
#define GRADFLOW_OPS_PLANE_BLOCKS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace gradflow {

class PlaneBlocks {
 public:
  using BlockFn = absl::FunctionRef<void(int64_t channel, int64_t block)>;

  // REQUIRES: all > 0
  PlaneBlocks(int64_t batch, int64_t channels, int64_t spatial);

  int64_t num_blocks() const { return num_blocks_; }
  // Elements of one channel in a block.
  int64_t Count(int64_t block) const;
  // Calls fn for each run of contiguous elements of a block, in order.
  void ForEachRun(int64_t channel, int64_t block,
                  absl::FunctionRef<void(int64_t offset, int64_t count)> fn) const;
  // Calls fn for every block of every channel, concurrently.
  void ForEachBlock(BlockFn fn) const;
  // For each channel: `first` for its blocks, then `between`, then `second` for its blocks.
  // Channels run concurrently, and long ones in several blocks at a time; where a channel fits
  // into the cache, `second` finds it there.
  void InTwoPasses(BlockFn first, absl::FunctionRef<void(int64_t channel)> between,
                   BlockFn second) const;

 private:
  int64_t ChannelSize() const { return batch_ * spatial_; }

  int64_t batch_;
  int64_t channels_;
  int64_t spatial_;
  // A block is either some planes, or one of several pieces of a plane.
  int64_t planes_per_block_;
  int64_t pieces_per_plane_;
  int64_t num_blocks_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_PLANE_BLOCKS_H_
