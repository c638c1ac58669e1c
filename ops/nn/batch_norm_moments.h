// The mean and variance of each channel, for batch normalization in training. Sums over blocks are
// combined with Chan's formula in a fixed tree, so their bits depend only on the elements and the
// shape.
//
// Sums are computed from differences to one element of the block. This bounds the loss by
// cancellation to a factor of the block's size: the variance is at least the squared distance of
// this element from the mean, divided by the block's size.
#ifndef GRADFLOW_OPS_NN_BATCH_NORM_MOMENTS_H_
#define GRADFLOW_OPS_NN_BATCH_NORM_MOMENTS_H_

#include <cstdint>

#include "gradflow/ops/common/plane_blocks.h"
#include "gradflow/ops/common/row_blocks.h"
#include "gradflow/ops/common/simd.h"

namespace gradflow {

// The mean, and the sum of the squared differences from the mean.
struct Moments {
  double mean;
  double squares;
};

// Computes the moments of the channels of rows `x`. `moments` is scratch of shape [num_blocks, 2,
// width]. The result for channel c is in moments[0][0][c] and moments[0][1][c].
void MomentsOfRows(const RowBlocks& blocks, int64_t channels, ElementType type, const void* x,
                   double* moments);

// Computes the moments of the channels of a tile of planes `x`, and stores them in
// moments[channels][num_blocks][2] at the tile's channels and block.
void MomentsOfPlanes(const PlaneBlocks& blocks, ElementType type, const void* x,
                     const PlaneBlocks::Tile& tile, double* moments);
// Returns the moments of a channel from the moments of its blocks, moments[num_blocks][2].
// Overwrites `moments`.
Moments CombineBlocksOfChannel(const PlaneBlocks& blocks, double* moments);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_BATCH_NORM_MOMENTS_H_
