// Divides a matrix [rows, channels] into blocks of rows, and these into tiles of columns, for loops
// with one sum or one set of coefficients for each channel (column). Tiles run in parallel. Loops
// read the rows of a tile in order.
//
// Narrow rows do not fill vectors, so several are taken as one wide row, on which the channels
// repeat. Coefficients are repeated likewise (Repeat), and sums of the repeats are added in the
// end. Every block has its own sums, which are added in a fixed tree. All sizes depend on the
// shape alone, so the bits of a sum do not depend on the number of threads.
#ifndef GRADFLOW_OPS_COMMON_ROW_BLOCKS_H_
#define GRADFLOW_OPS_COMMON_ROW_BLOCKS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace gradflow {

struct RunContext;

class RowBlocks {
 public:
  // Columns in a tile: few enough for their sums and coefficients to stay in a fast cache, many
  // enough for memory to be read in long runs.
  static constexpr int64_t kMaxColumns = 1024;

  // Some columns of a block.
  struct Tile {
    int64_t block;
    // The index of the first element in the matrix.
    int64_t offset;
    int64_t rows;
    int64_t column;
    int64_t columns;
    // This tile's columns of the partial wide row that follows the last full one, which begin at
    // `rest_offset`. rest_columns is 0 if the partial row has no columns here.
    int64_t rest_offset;
    int64_t rest_columns;

    // Calls fn(offset, rows, columns) for the full wide rows and for the rest.
    template <typename F>
    void ForEachPart(const F& fn) const {
      fn(offset, rows, columns);
      if (rest_columns > 0) fn(rest_offset, int64_t{1}, rest_columns);
    }
  };

  // REQUIRES: rows > 0, channels > 0
  RowBlocks(const RunContext& run, int64_t rows, int64_t channels);

  const RunContext& run() const { return run_; }

  // Columns of a wide row: `repeats` times `channels`.
  int64_t width() const { return width_; }
  int64_t repeats() const { return repeats_; }
  int64_t num_blocks() const { return num_blocks_; }
  // The number of wide rows of blocks [begin, end) that have column `column`.
  int64_t RowsInBlocks(int64_t begin, int64_t end, int64_t column) const;
  // The number of columns in the partial wide row at the end of the last block.
  int64_t rest() const { return rest_; }
  // The number of rows of the matrix in repeat `repeat`.
  int64_t RowsInRepeat(int64_t repeat) const;

  // Calls fn for every tile, concurrently.
  void ForEachTile(absl::FunctionRef<void(const Tile&)> fn) const;
  // Extends values[channels] to values[width], where channels repeat.
  template <typename T>
  void Repeat(T* values) const {
    if (repeats_ == 1) return;
    for (int64_t i = channels_; i < width_; ++i) values[i] = values[i - channels_];
  }
  // Adds up sums[num_blocks][num_sums][width]: sum s of channel c is sums[s * width + c]
  // afterwards.
  void AddUp(double* sums, int64_t num_sums) const;

 private:
  const RunContext& run_;
  int64_t channels_;
  int64_t repeats_;
  int64_t width_;
  // The number of full wide rows, and of the elements behind them.
  int64_t wide_rows_;
  int64_t rest_;
  int64_t rows_per_block_;
  int64_t num_blocks_;
};

// Adds up sums[num_blocks][size] into sums[0], in a fixed tree.
void AddUpBlocks(const RunContext& run, double* sums, int64_t num_blocks, int64_t size);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ROW_BLOCKS_H_
