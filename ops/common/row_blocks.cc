#include "gradflow/ops/common/row_blocks.h"

#include <algorithm>

#include "gradflow/core/parallel.h"

namespace gradflow {
namespace row_blocks {

// A block of this many elements is worth a task. Adding its sums to the sums of other blocks takes
// little of its time.
constexpr int64_t kBlockElements = 128 * 1024;
// Narrow rows are repeated up to this width, at which the ends of rows cost little.
constexpr int64_t kMaxRepeatedColumns = 512;
// Tiles smaller than this share a task.
constexpr int64_t kTaskElements = 32 * 1024;

}  // namespace row_blocks

RowBlocks::RowBlocks(const RunContext& run, int64_t rows, int64_t channels)
    : run_(run), channels_(channels), repeats_(1) {
  while (repeats_ < 256 && channels * repeats_ * 2 <= row_blocks::kMaxRepeatedColumns &&
         repeats_ * 2 <= rows) {
    repeats_ *= 2;
  }
  width_ = channels * repeats_;
  wide_rows_ = rows / repeats_;
  rest_ = rows % repeats_ * channels;
  // Blocks have about the same size, so that threads finish together. The number of rows is a
  // multiple of four, so that loops over pairs of rows have few rows without a partner.
  constexpr int64_t kGroup = 4;
  const int64_t most_rows = row_blocks::kBlockElements / std::min(width_, kMaxColumns);
  const int64_t even_rows = NumBlocks(wide_rows_, NumBlocks(wide_rows_, most_rows));
  rows_per_block_ = NumBlocks(even_rows, kGroup) * kGroup;
  num_blocks_ = NumBlocks(wide_rows_, rows_per_block_);
}

int64_t RowBlocks::RowsInBlocks(int64_t begin, int64_t end, int64_t column) const {
  if (end < num_blocks_) return (end - begin) * rows_per_block_;
  return wide_rows_ - begin * rows_per_block_ + (column < rest_ ? 1 : 0);
}

int64_t RowBlocks::RowsInRepeat(int64_t repeat) const {
  return wide_rows_ + (repeat * channels_ < rest_ ? 1 : 0);
}

void RowBlocks::ForEachTile(absl::FunctionRef<void(const Tile&)> fn) const {
  const int64_t tiles_per_row = NumBlocks(width_, kMaxColumns);
  const int64_t tile_elements =
      std::min(width_, kMaxColumns) * std::min(rows_per_block_, wide_rows_);
  const int64_t tiles_per_task = std::max<int64_t>(1, row_blocks::kTaskElements / tile_elements);
  ParallelFor(run_, num_blocks_ * tiles_per_row, tiles_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Tile tile;
      tile.block = i / tiles_per_row;
      tile.column = i % tiles_per_row * kMaxColumns;
      tile.columns = std::min(kMaxColumns, width_ - tile.column);
      tile.offset = tile.block * rows_per_block_ * width_ + tile.column;
      tile.rows = std::min(rows_per_block_, wide_rows_ - tile.block * rows_per_block_);
      tile.rest_offset = wide_rows_ * width_ + tile.column;
      tile.rest_columns = 0;
      if (tile.block == num_blocks_ - 1 && tile.column < rest_) {
        tile.rest_columns = std::min(tile.columns, rest_ - tile.column);
      }
      fn(tile);
    }
  });
}

void RowBlocks::AddUp(double* sums, int64_t num_sums) const {
  AddUpBlocks(run_, sums, num_blocks_, num_sums * width_);
  for (int64_t s = 0; s < num_sums; ++s) {
    double* repeats = sums + s * width_;
    for (int64_t half = width_ / 2; half >= channels_; half /= 2) {
      for (int64_t i = 0; i < half; ++i) repeats[i] += repeats[half + i];
    }
  }
}

void AddUpBlocks(const RunContext& run, double* sums, int64_t num_blocks, int64_t size) {
  if (num_blocks == 1) return;
  ParallelFor(run, size, std::max<int64_t>(64, row_blocks::kTaskElements / num_blocks),
              [&](int64_t begin, int64_t end) {
                for (int64_t step = 1; step < num_blocks; step *= 2) {
                  for (int64_t block = 0; block + step < num_blocks; block += 2 * step) {
                    double* a = sums + block * size;
                    const double* b = sums + (block + step) * size;
                    for (int64_t i = begin; i < end; ++i) a[i] += b[i];
                  }
                }
              });
}

}  // namespace gradflow
