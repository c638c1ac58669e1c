#include "gradflow/ops/math/segment_rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

// The number of columns of a tile, whose accumulators stay in the L1 cache.
constexpr int64_t kTile = 512;
// Segments with more elements per tile are split into pieces that run in parallel.
constexpr int64_t kPieceElements = 1 << 16;
// The maximum size in bytes of the accumulators that rows are scattered to, which stay in the L2
// cache, and the maximum number of blocks of rows. Each block has separate accumulators.
constexpr int64_t kScatteredBytes = 1 << 20;
constexpr int64_t kMaxScatterBlocks = 64;
// The minimum number of rows of a block, per segment. Adding the rows then costs much more than
// clearing and merging the accumulators of the blocks, which are in memory.
constexpr int64_t kRowsOfSegment = 32;
// The number of narrow rows that are gathered before they are added.
constexpr int64_t kGathered = 64;

// A reduction by segment.
class SegmentReduction {
 public:
  SegmentReduction(const Reducer& reducer, const SegmentRows& rows, int64_t width, const void* data,
                   const void* empty, void* out)
      : reducer_(reducer),
        rows_(rows),
        element_size_(static_cast<int64_t>(reducer.element_size) * reducer.parts),
        width_(width * reducer.parts),
        tile_(std::min(width_, kTile)),
        tiles_(NumBlocks(width_, tile_)),
        piece_rows_(kPieceElements / tile_),
        data_(static_cast<const char*>(data)),
        empty_(static_cast<const char*>(empty)),
        out_(static_cast<char*>(out)) {}

  absl::Status Run(KernelContext& ctx) const {
    const int64_t segments = rows_.num_segments;
    std::vector<int64_t> long_segments;
    for (int64_t s = 0; s < segments; ++s) {
      if (Length(s) > piece_rows_) long_segments.push_back(s);
    }
    const double mean_rows =
        1.0 * (rows_.starts[segments] - rows_.starts[0]) / static_cast<double>(segments);
    const double nanoseconds = (0.7 * mean_rows + 0.5) * tile_ + 10;
    ParallelFor(ctx, segments * tiles_, BlockSizeForCost(nanoseconds),
                [&](int64_t begin, int64_t end) {
                  alignas(64) char accumulators[kTile * Reducer::kMaxAccumulatorSize];
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t s = task / tiles_;
                    if (Length(s) > piece_rows_) continue;
                    if (Length(s) == 0) {
                      FillEmpty(s, task % tiles_);
                      continue;
                    }
                    Accumulate(rows_.starts[s], rows_.starts[s + 1], task % tiles_, accumulators);
                    Finish(s, task % tiles_, accumulators);
                  }
                });
    return long_segments.empty() ? absl::OkStatus() : ReduceLongSegments(ctx, long_segments);
  }

 private:
  int64_t Length(int64_t segment) const {
    return rows_.starts[segment + 1] - rows_.starts[segment];
  }
  int64_t Columns(int64_t tile) const { return std::min(tile_, width_ - tile * tile_); }
  // The size in bytes of a part of an element.
  int64_t part_size() const { return static_cast<int64_t>(reducer_.element_size); }

  absl::Status ReduceLongSegments(KernelContext& ctx, const std::vector<int64_t>& segments) const {
    // The first piece of each segment.
    std::vector<int64_t> first_piece = {0};
    for (const int64_t s : segments) {
      first_piece.push_back(first_piece.back() + NumBlocks(Length(s), piece_rows_));
    }
    const int64_t pieces = first_piece.back();
    const int64_t stride = tile_ * static_cast<int64_t>(reducer_.accumulator_size);
    Tensor temp;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_UINT8, {pieces, tiles_, stride}, &temp));
    char* partials = static_cast<char*>(temp.raw_data());
    ParallelFor(ctx, pieces * tiles_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t piece = task / tiles_;
        const auto next = std::upper_bound(first_piece.begin(), first_piece.end(), piece);
        const int64_t i = next - first_piece.begin() - 1;
        const int64_t s = segments[i];
        const int64_t from = rows_.starts[s] + (piece - first_piece[i]) * piece_rows_;
        Accumulate(from, std::min(from + piece_rows_, rows_.starts[s + 1]), task % tiles_,
                   partials + task * stride);
      }
    });
    ParallelFor(ctx, static_cast<int64_t>(segments.size()) * tiles_, 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t i = task / tiles_;
                    const int64_t tile = task % tiles_;
                    char* sum = partials + (first_piece[i] * tiles_ + tile) * stride;
                    for (int64_t p = first_piece[i] + 1; p < first_piece[i + 1]; ++p) {
                      reducer_.merge(partials + (p * tiles_ + tile) * stride, Columns(tile), sum);
                    }
                    Finish(segments[i], tile, sum);
                  }
                });
    return absl::OkStatus();
  }

  // Accumulates the rows [begin, end) of the order for the columns of a tile.
  void Accumulate(int64_t begin, int64_t end, int64_t tile, char* accumulators) const {
    const int64_t columns = Columns(tile);
    const char* x = data_ + tile * tile_ * part_size();
    const int64_t row_bytes = width_ * part_size();
    reducer_.clear(columns, accumulators);
    if (rows_.order == nullptr) {
      reducer_.add(x + begin * row_bytes, end - begin, width_, columns, 1, accumulators);
    } else if (row_bytes <= 16) {
      alignas(16) char gathered[kGathered * 16];
      while (begin < end) {
        const int64_t n = std::min(kGathered, end - begin);
        for (int64_t i = 0; i < n; ++i) {
          std::memcpy(gathered + i * row_bytes, x + rows_.order[begin + i] * row_bytes, row_bytes);
        }
        reducer_.add(gathered, n, width_, columns, 1, accumulators);
        begin += n;
      }
    } else {
      for (int64_t i = begin; i < end; ++i) {
        reducer_.add(x + rows_.order[i] * row_bytes, 1, 0, columns, 1, accumulators);
      }
    }
  }

  void Finish(int64_t segment, int64_t tile, const char* accumulators) const {
    reducer_.finish(accumulators, Length(segment), Columns(tile), Row(segment, tile));
  }

  void FillEmpty(int64_t segment, int64_t tile) const {
    char* row = Row(segment, tile);
    const int64_t bytes = Columns(tile) * part_size();
    for (int64_t i = 0; i < bytes; i += element_size_) std::memcpy(row + i, empty_, element_size_);
  }

  char* Row(int64_t segment, int64_t tile) const {
    return out_ + (segment * width_ + tile * tile_) * part_size();
  }

  const Reducer& reducer_;
  const SegmentRows& rows_;
  const int64_t element_size_;
  // The number of parts of a row, of parts of a tile, and of tiles of a row. A tile has whole
  // elements.
  const int64_t width_;
  const int64_t tile_;
  const int64_t tiles_;
  const int64_t piece_rows_;
  const char* const data_;
  const char* const empty_;
  char* const out_;
};

}  // namespace

absl::StatusOr<absl::Span<const int64_t>> Int64Elements(KernelContext& ctx, int i,
                                                        absl::string_view name, Tensor* storage) {
  const Tensor& input = ctx.input(i);
  const int64_t n = input.NumElements();
  if (input.dtype() == DT_INT64) return input.span<int64_t>();
  using Types = TypeList<int32_t, int16_t, uint16_t, uint32_t>;
  absl::Status status = errors::InvalidArgument(name, " must be integers, but is of type ",
                                                DataTypeString(input.dtype()));
  DispatchType(Types(), input.dtype(), [&](auto tag) {
    status = ctx.AllocateTemp(DT_INT64, {n}, storage);
    if (!status.ok()) return;
    const auto from = input.span<typename decltype(tag)::type>();
    std::copy(from.begin(), from.end(), static_cast<int64_t*>(storage->raw_data()));
  });
  GRADFLOW_RETURN_IF_ERROR(status);
  return absl::MakeConstSpan(static_cast<const int64_t*>(storage->raw_data()), n);
}

absl::Status CheckSortedIds(absl::string_view name, absl::Span<const int64_t> ids, int64_t limit) {
  int64_t previous = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    if (id < 0) return errors::InvalidArgument(name, "[", i, "] is ", id, ", expected at least 0");
    if (id < previous) {
      return errors::InvalidArgument(name, " must be sorted, but ", name, "[", i, "] is ", id,
                                     " after ", previous);
    }
    previous = id;
  }
  if (limit >= 0 && !ids.empty() && previous >= limit) {
    return errors::InvalidArgument(name, "[", ids.size() - 1, "] is ", previous,
                                   ", expected less than ", limit, ", the number of segments");
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(absl::string_view name, absl::Span<const int64_t> indices,
                          int64_t limit) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= limit) {
      return errors::InvalidArgument(name, "[", i, "] is ", indices[i], ", expected in [0, ", limit,
                                     ")");
    }
  }
  return absl::OkStatus();
}

absl::Status GroupSortedRows(KernelContext& ctx, absl::Span<const int64_t> ids,
                             int64_t num_segments, SegmentRows* rows) {
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {num_segments + 1}, &rows->starts_storage));
  int64_t* starts = static_cast<int64_t*>(rows->starts_storage.raw_data());
  int64_t segment = 0;
  starts[0] = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    while (segment < ids[i]) starts[++segment] = static_cast<int64_t>(i);
  }
  while (segment < num_segments) starts[++segment] = static_cast<int64_t>(ids.size());
  rows->num_segments = num_segments;
  rows->starts = starts;
  return absl::OkStatus();
}

absl::Status GroupRows(KernelContext& ctx, absl::Span<const int64_t> ids, int64_t num_segments,
                       SegmentRows* rows) {
  const int64_t n = static_cast<int64_t>(ids.size());
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {num_segments + 1}, &rows->starts_storage));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {n}, &rows->order_storage));
  int64_t* starts = static_cast<int64_t*>(rows->starts_storage.raw_data());
  int64_t* order = static_cast<int64_t*>(rows->order_storage.raw_data());
  // starts[s + 1] first counts the rows of segment s, and is then the position of its next row.
  std::fill_n(starts, num_segments + 1, 0);
  for (const int64_t id : ids) {
    if (id >= 0) ++starts[id + 1];
  }
  int64_t sum = 0;
  for (int64_t s = 1; s <= num_segments; ++s) {
    const int64_t count = starts[s];
    starts[s] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] >= 0) order[starts[ids[i] + 1]++] = i;
  }
  rows->num_segments = num_segments;
  rows->starts = starts;
  rows->order = order;
  return absl::OkStatus();
}

absl::Status ReduceSegments(KernelContext& ctx, const Reducer& reducer, const SegmentRows& rows,
                            int64_t width, const Tensor& data, const void* empty, Tensor* out) {
  return SegmentReduction(reducer, rows, width, data.raw_data(), empty, out->raw_data()).Run(ctx);
}

bool CanScatterRows(const Reducer& reducer, int64_t num_segments, int64_t width) {
  constexpr int64_t kMaxWidth = 256;
  return width <= kMaxWidth &&
         num_segments <= kScatteredBytes / (width * reducer.parts *
                                            static_cast<int64_t>(reducer.accumulator_size));
}

absl::Status ScatterRows(KernelContext& ctx, const Reducer& reducer, absl::Span<const int64_t> ids,
                         int64_t num_segments, int64_t width, const Tensor& data, const void* empty,
                         Tensor* out) {
  const int64_t n = static_cast<int64_t>(ids.size());
  const int64_t columns = width * reducer.parts;
  const int64_t row_bytes = columns * static_cast<int64_t>(reducer.element_size);
  const int64_t stride = columns * static_cast<int64_t>(reducer.accumulator_size);
  const int64_t blocks = std::clamp<int64_t>(
      std::min(n * columns / kPieceElements, n / (kRowsOfSegment * num_segments)), 1,
      kMaxScatterBlocks);
  const int64_t block_rows = std::max<int64_t>(1, NumBlocks(n, blocks));
  Tensor sums;
  Tensor counts;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_UINT8, {blocks, num_segments * stride}, &sums));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {blocks, num_segments}, &counts));
  char* const sum = static_cast<char*>(sums.raw_data());
  int64_t* const count = static_cast<int64_t*>(counts.raw_data());
  const char* const x = static_cast<const char*>(data.raw_data());
  ParallelFor(ctx, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      char* const accumulators = sum + block * num_segments * stride;
      int64_t* const rows = count + block * num_segments;
      reducer.clear(num_segments * columns, accumulators);
      std::fill_n(rows, num_segments, 0);
      const int64_t stop = std::min(n, (block + 1) * block_rows);
      for (int64_t i = block * block_rows; i < stop; ++i) {
        // Rows are read in order, but accumulators in any order.
        constexpr int64_t kAhead = 4;
        constexpr int64_t kAheadBytes = 4096;
        const int64_t next = i + kAhead < stop ? ids[i + kAhead] : -1;
        if (next >= 0) internal::Prefetch(accumulators + next * stride, stride);
        internal::Prefetch(x + i * row_bytes + kAheadBytes, row_bytes);
        if (ids[i] < 0) continue;
        ++rows[ids[i]];
        reducer.add(x + i * row_bytes, 1, 0, columns, 1, accumulators + ids[i] * stride);
      }
    }
  });
  char* const result = static_cast<char*>(out->raw_data());
  const int64_t element_size = static_cast<int64_t>(reducer.element_size) * reducer.parts;
  const auto finish = [&](int64_t begin, int64_t end) {
    for (int64_t block = 1; block < blocks; ++block) {
      const int64_t first = block * num_segments + begin;
      reducer.merge(sum + first * stride, (end - begin) * columns, sum + begin * stride);
      for (int64_t s = begin; s < end; ++s) count[s] += count[block * num_segments + s];
    }
    for (int64_t s = begin; s < end; ++s) {
      char* const row = result + s * row_bytes;
      if (count[s] > 0) {
        reducer.finish(sum + s * stride, count[s], columns, row);
        continue;
      }
      for (int64_t i = 0; i < row_bytes; i += element_size) {
        std::memcpy(row + i, empty, element_size);
      }
    }
  };
  ParallelFor(ctx, num_segments, BlockSizeForCost(1.0 * static_cast<double>(blocks * columns)),
              finish);
  return absl::OkStatus();
}

}  // namespace gradflow
