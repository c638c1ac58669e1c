// How kernels go through a matrix [rows, channels] that has one sum, or one set of coefficients,
// for each channel (column): in blocks of rows that run in parallel and read memory in order.
//
// Narrow rows are bad for vectors, so several are taken as one wide row, on which the channels
// repeat: coefficients are repeated likewise (Repeat), and sums of the repeats are added in the
// end. Every block has its own sums, and these are added in a fixed tree. All sizes depend on the
// shape alone, and so do the bits of the results.
#ifndef GRADFLOW_OPS_ROW_BLOCKS_H_
#define GRADFLOW_OPS_ROW_BLOCKS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace gradflow {

class RowBlocks {
 public:
  // Columns that a kernel goes through at a time: few enough for their sums and coefficients to
  // stay in a fast cache, many enough for memory to be read in long runs.
  static constexpr int64_t kMaxColumns = 1024;

  // Some columns of a block.
  struct Tile {
    int64_t block;
    // In the matrix, where its first element is.
    int64_t offset;
    int64_t rows;
    int64_t column;
    int64_t columns;
    // The wide row behind the last full one may end early: 0, or the columns that it has here,
    // from `rest_offset`.
    int64_t rest_offset;
    int64_t rest_columns;
  };

  // REQUIRES: rows > 0, channels > 0
  RowBlocks(int64_t rows, int64_t channels);

  // Columns of a wide row: `repeats` times `channels`.
  int64_t width() const { return width_; }
  int64_t repeats() const { return repeats_; }
  int64_t num_blocks() const { return num_blocks_; }
  // Wide rows of blocks [begin, end) that have column `column`.
  int64_t RowsInBlocks(int64_t begin, int64_t end, int64_t column) const;
  // Columns below this are in one row more of the last block than the others.
  int64_t rest() const { return rest_; }
  // Rows of the matrix that are in repeat `repeat`.
  int64_t RowsInRepeat(int64_t repeat) const;

  // Calls fn for every tile, concurrently.
  void ForEachTile(absl::FunctionRef<void(const Tile&)> fn) const;
  // Makes values[channels] values[width], where channels repeat.
  template <typename T>
  void Repeat(T* values) const {
    if (repeats_ == 1) return;
    for (int64_t i = channels_; i < width_; ++i) values[i] = values[i - channels_];
  }
  // Adds up sums[num_blocks][num_sums][width]: sum s of channel c is sums[s * width + c]
  // afterwards.
  void AddUp(double* sums, int64_t num_sums) const;

 private:
  int64_t channels_;
  int64_t repeats_;
  int64_t width_;
  // Full wide rows, and the elements of the one behind them.
  int64_t wide_rows_;
  int64_t rest_;
  int64_t rows_per_block_;
  int64_t num_blocks_;
};

// Adds up sums[num_blocks][size] into sums[0], in a fixed tree.
void AddUpBlocks(double* sums, int64_t num_blocks, int64_t size);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_ROW_BLOCKS_H_
