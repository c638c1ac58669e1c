// The mean and variance of each channel, for batch normalization in training. Sums over blocks are
// combined by Chan's formula in a fixed tree, so that their bits depend on nothing but the elements
// and the shape.
//
// Sums are of differences from one of the block's elements. Cancellation then costs a factor of the
// block's size at most, because the variance is at least the squared distance of that element from
// the mean, divided by that size.
#ifndef GRADFLOW_OPS_NN_BATCH_NORM_MOMENTS_H_
#define GRADFLOW_OPS_NN_BATCH_NORM_MOMENTS_H_

#include <cstdint>

#include "gradflow/ops/common/plane_blocks.h"
#include "gradflow/ops/common/row_blocks.h"
#include "gradflow/ops/common/simd.h"

namespace gradflow {

// The mean, and the sum of squared differences from it.
struct Moments {
  double mean;
  double squares;
};

// Computes the moments of the channels of rows `x` in moments[num_blocks][2][width]. The result for
// channel c is in moments[0][0][c] and moments[0][1][c].
void MomentsOfRows(const RowBlocks& blocks, int64_t channels, ElementType type, const void* x,
                   double* moments);

// Computes the moments of a tile's channels of planes `x`, each in its place in
// moments[channels][num_blocks][2].
void MomentsOfPlanes(const PlaneBlocks& blocks, ElementType type, const void* x,
                     const PlaneBlocks::Tile& tile, double* moments);
// Returns the moments of a channel from those of its blocks, moments[num_blocks][2], which are
// overwritten.
Moments CombineBlocksOfChannel(const PlaneBlocks& blocks, double* moments);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_BATCH_NORM_MOMENTS_H_
