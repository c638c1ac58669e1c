// The mean and variance of each channel, for batch normalisation in training: from sums over
// blocks, which are put together by Chan's formula in a fixed tree, so that their bits depend on
// nothing but the elements and the shape.
//
// Sums are of differences from one of the block's elements. Then cancellation costs a factor of the
// block's size at most: a deviation cannot be smaller than that beside the distance of an element
// from the mean.
#ifndef GRADFLOW_OPS_BATCH_NORM_MOMENTS_H_
#define GRADFLOW_OPS_BATCH_NORM_MOMENTS_H_

#include <cstdint>

#include "gradflow/ops/plane_blocks.h"
#include "gradflow/ops/row_blocks.h"
#include "gradflow/ops/simd.h"

namespace gradflow {

// The mean, and the sum of squared deviations from it.
struct Moments {
  double mean;
  double squares;
};

// The moments of the channels of rows `x`. Uses moments[num_blocks][2][width]; the result for
// channel c is in moments[0][0][c] and moments[0][1][c].
void MomentsOfRows(const RowBlocks& blocks, int64_t channels, ElementType type, const void* x,
                   double* moments);

// The moments of a tile's channels of planes `x`, each into its place in
// moments[channels][num_blocks][2].
void MomentsOfPlanes(const PlaneBlocks& blocks, ElementType type, const void* x,
                     const PlaneBlocks::Tile& tile, double* moments);
// Those of a channel from those of its blocks, moments[num_blocks][2], which are overwritten.
Moments CombineBlocksOfChannel(const PlaneBlocks& blocks, double* moments);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_BATCH_NORM_MOMENTS_H_
