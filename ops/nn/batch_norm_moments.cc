#include "gradflow/ops/nn/batch_norm_moments.h"

#include <algorithm>
#include <cmath>

#include "gradflow/core/parallel.h"
#include "gradflow/ops/nn/batch_norm_common.h"
#include "gradflow/ops/nn/batch_norm_simd.h"

namespace gradflow {
namespace batch_norm_moments {
namespace {

// Computes moments from the sums of x - shift and of (x - shift)^2 over `count` elements.
Moments MomentsFromSums(double count, double shift, double sum, double sum_of_squares) {
  const double mean = sum / count;
  const double squares = sum_of_squares - sum * mean;
  // Rounding may make the sum slightly negative. NaN stays NaN.
  return {shift + mean, squares < 0 ? 0 : squares};
}

// Combines the moments `b` of n columns into the moments `a` of n columns.
void CombineAll(int64_t n, int64_t count_a, double* mean_a, double* squares_a, int64_t count_b,
                const double* mean_b, const double* squares_b) {
  const double part_b = static_cast<double>(count_b) / static_cast<double>(count_a + count_b);
  const double weight = static_cast<double>(count_a) * part_b;
  for (int64_t i = 0; i < n; ++i) {
    const double difference = mean_b[i] - mean_a[i];
    // An infinite mean stays infinite.
    mean_a[i] += std::isfinite(difference) ? difference * part_b : mean_b[i];
    squares_a[i] += squares_b[i] + difference * difference * weight;
  }
}

// Combines blocks in a tree, for a range of columns that have the same number of rows.
void CombineBlocks(const RowBlocks& blocks, int64_t begin, int64_t end, double* moments) {
  if (begin >= end) return;
  const int64_t width = blocks.width();
  const int64_t num_blocks = blocks.num_blocks();
  for (int64_t step = 1; step < num_blocks; step *= 2) {
    for (int64_t a = 0; a + step < num_blocks; a += 2 * step) {
      const int64_t b = a + step;
      double* const mean_a = moments + a * 2 * width + begin;
      const double* const mean_b = moments + b * 2 * width + begin;
      CombineAll(end - begin, blocks.RowsInBlocks(a, b, begin), mean_a, mean_a + width,
                 blocks.RowsInBlocks(b, b + step, begin), mean_b, mean_b + width);
    }
  }
}

// Computes the moments of channels from the moments of the columns of blocks.
void CombineColumns(const RowBlocks& blocks, int64_t channels, double* moments) {
  const int64_t width = blocks.width();
  if (blocks.num_blocks() > 1) {
    ParallelFor(blocks.run(), width, 512, [&](int64_t begin, int64_t end) {
      // The columns before rest() have one more row.
      const int64_t middle = std::min(std::max(begin, blocks.rest()), end);
      CombineBlocks(blocks, begin, middle, moments);
      CombineBlocks(blocks, middle, end, moments);
    });
  }
  double* const mean = moments;
  double* const squares = moments + width;
  // In round `half`, repeat r is combined with repeat r + half, which includes all repeats r + half
  // + k * 2 * half.
  for (int64_t half = blocks.repeats() / 2; half > 0; half /= 2) {
    const auto count = [&](int64_t repeat) {
      int64_t rows = 0;
      for (int64_t r = repeat; r < blocks.repeats(); r += 2 * half) rows += blocks.RowsInRepeat(r);
      return rows;
    };
    for (int64_t r = 0; r < half; ++r) {
      const int64_t a = r * channels;
      const int64_t b = (r + half) * channels;
      CombineAll(channels, count(r), mean + a, squares + a, count(r + half), mean + b, squares + b);
    }
  }
}

// Computes the moments of a tile's columns. The first element of a column is its shift.
void MomentsOfTile(ElementType type, const void* x, int64_t width, const RowBlocks::Tile& tile,
                   double* mean, double* squares) {
  float shift[RowBlocks::kMaxColumns];
  ElementsToFloats(type, ElementAt(x, type, tile.offset), tile.columns, shift);
  for (int64_t j = 0; j < tile.columns; ++j) {
    if (!std::isfinite(shift[j])) shift[j] = 0;
  }
  std::fill_n(mean, tile.columns, 0.0);
  std::fill_n(squares, tile.columns, 0.0);
  tile.ForEachPart([&](int64_t offset, int64_t rows, int64_t columns) {
    BatchNormMomentsOfRows(type, ElementAt(x, type, offset), {rows, width, columns}, shift, mean,
                           squares);
  });
  for (int64_t j = 0; j < tile.columns; ++j) {
    const double count = static_cast<double>(tile.rows + (j < tile.rest_columns ? 1 : 0));
    const Moments moments = MomentsFromSums(count, shift[j], mean[j], squares[j]);
    mean[j] = moments.mean;
    squares[j] = moments.squares;
  }
}

}  // namespace
}  // namespace batch_norm_moments

void MomentsOfRows(const RowBlocks& blocks, int64_t channels, ElementType type, const void* x,
                   double* moments) {
  const int64_t width = blocks.width();
  blocks.ForEachTile([&](const RowBlocks::Tile& tile) {
    double* const mean = moments + tile.block * 2 * width + tile.column;
    batch_norm_moments::MomentsOfTile(type, x, width, tile, mean, mean + width);
  });
  batch_norm_moments::CombineColumns(blocks, channels, moments);
}

void MomentsOfPlanes(const PlaneBlocks& blocks, ElementType type, const void* x,
                     const PlaneBlocks::Tile& tile, double* moments) {
  const Planes& planes = tile.planes;
  const void* const first = ElementAt(x, type, tile.offset);
  float shift[PlaneBlocks::kMaxChannels];
  double lanes[PlaneBlocks::kMaxChannels * 2 * kSumLanes];
  for (int64_t i = 0; i < planes.channels; ++i) {
    ElementsToFloats(type, ElementAt(first, type, i * planes.channel_stride), 1, &shift[i]);
    if (!std::isfinite(shift[i])) shift[i] = 0;
  }
  std::fill_n(lanes, planes.channels * 2 * kSumLanes, 0.0);
  BatchNormMomentsOfPlanes(type, first, planes, shift, lanes);
  const double count = static_cast<double>(blocks.Count(tile.block));
  for (int64_t i = 0; i < planes.channels; ++i) {
    const double* const sums = lanes + i * 2 * kSumLanes;
    const Moments result = batch_norm_moments::MomentsFromSums(count, shift[i], SumOfLanes(sums),
                                                               SumOfLanes(sums + kSumLanes));
    double* const slot = moments + ((tile.channel + i) * blocks.num_blocks() + tile.block) * 2;
    slot[0] = result.mean;
    slot[1] = result.squares;
  }
}

Moments CombineBlocksOfChannel(const PlaneBlocks& blocks, double* moments) {
  const int64_t num_blocks = blocks.num_blocks();
  const auto count = [&](int64_t begin, int64_t end) {
    int64_t sum = 0;
    for (int64_t b = begin; b < std::min(end, num_blocks); ++b) sum += blocks.Count(b);
    return sum;
  };
  for (int64_t step = 1; step < num_blocks; step *= 2) {
    for (int64_t a = 0; a + step < num_blocks; a += 2 * step) {
      double* const left = moments + a * 2;
      const double* const right = left + step * 2;
      batch_norm_moments::CombineAll(1, count(a, a + step), left, left + 1,
                                     count(a + step, a + 2 * step), right, right + 1);
    }
  }
  return {moments[0], moments[1]};
}

}  // namespace gradflow
