// Divides a matrix [rows, channels] into blocks of rows, and each block into tiles of columns.
// Loops over the tiles have a sum or a set of coefficients per channel (column). Tiles run in
// parallel. A loop reads the rows of a tile in order.
//
// Narrow rows do not fill vectors. Several of them are therefore treated as one wide row, which
// repeats the channels. Repeat() repeats the coefficients likewise, and AddUp() adds up the sums of
// the repeats. Each block has its own sums, which are added in a fixed tree. All sizes depend only
// on the shape, so the bits of a sum do not depend on the number of threads.
#ifndef GRADFLOW_OPS_COMMON_ROW_BLOCKS_H_
#define GRADFLOW_OPS_COMMON_ROW_BLOCKS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace gradflow {

struct RunContext;

class RowBlocks {
 public:
  // The maximum number of columns in a tile: few enough to keep their sums and coefficients in a
  // fast cache, and enough to read memory in long runs.
  static constexpr int64_t kMaxColumns = 1024;

  // A range of columns of a block.
  struct Tile {
    int64_t block;
    // The index of the first element in the matrix.
    int64_t offset;
    int64_t rows;
    int64_t column;
    int64_t columns;
    // The matrix may end with a partial wide row. The tile's columns of this row begin at
    // `rest_offset`. rest_columns is 0 if the partial row has no columns in this tile.
    int64_t rest_offset;
    int64_t rest_columns;

    // Calls fn(offset, rows, columns) for the full wide rows and for the partial wide row.
    template <typename F>
    void ForEachPart(const F& fn) const {
      fn(offset, rows, columns);
      if (rest_columns > 0) fn(rest_offset, int64_t{1}, rest_columns);
    }
  };

  // REQUIRES: rows > 0, channels > 0
  RowBlocks(const RunContext& run, int64_t rows, int64_t channels);

  const RunContext& run() const { return run_; }

  // The number of columns of a wide row: `repeats` times `channels`.
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
  // Extends values[channels] to values[width] by repeating the channels.
  template <typename T>
  void Repeat(T* values) const {
    if (repeats_ == 1) return;
    for (int64_t i = channels_; i < width_; ++i) values[i] = values[i - channels_];
  }
  // Adds up sums[num_blocks][num_sums][width]. Sum s of channel c is then sums[s * width + c].
  void AddUp(double* sums, int64_t num_sums) const;

 private:
  const RunContext& run_;
  int64_t channels_;
  int64_t repeats_;
  int64_t width_;
  // The number of full wide rows, and the number of elements after them.
  int64_t wide_rows_;
  int64_t rest_;
  int64_t rows_per_block_;
  int64_t num_blocks_;
};

// Adds up sums[num_blocks][size] into the first block, in a fixed tree.
void AddUpBlocks(const RunContext& run, double* sums, int64_t num_blocks, int64_t size);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ROW_BLOCKS_H_
