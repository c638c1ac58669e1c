#include "gradflow/ops/common/strided_copy.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/tile_copy.h"
#include "gradflow/ops/common/transpose_simd.h"

namespace gradflow {
namespace {

// Longer rows are written fast enough without non-temporal stores, and stay in the cache.
constexpr int64_t kMaxStreamedRowBytes = 4096;
// The length of a target row in a tile whose rows begin at cache lines. It is short so that the
// processor writes whole lines.
constexpr int64_t kAlignedTileRowBytes = 128;
// The minimum length of a target row, and the size of a tile, of TransposeLines. A tile with few
// columns has longer rows.
constexpr int64_t kLinesTileRowBytes = 256;
constexpr int64_t kLinesTileBytes = 65536;
// The number of columns of a tile, in cache lines of the source.
constexpr int64_t kTileLines = 256;

// The cost of strings is an estimate that makes blocks short, so that a stop takes effect soon.
double NanosecondsPerElement(const Tensor& source, bool contiguous) {
  if (DataTypeIsPlainBytes(source.dtype())) {
    return contiguous ? 0.05 * DataTypeSize(source.dtype()) : 1;
  }
  if (source.dtype() != DT_STRING) return 20;
  const auto strings = source.span<tstring>();
  const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(strings.size()) / 64);
  double characters = 0;
  double looked_at = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(strings.size()); i += step) {
    characters += static_cast<double>(strings[i].size());
    ++looked_at;
  }
  return 20 + 0.1 * characters / std::max(looked_at, 1.0);
}

template <typename E>
void CopyRun(const E* from, int64_t from_stride, E* to, int64_t to_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1) {
    if constexpr (kIsObject<E>) {
      std::copy_n(from, n, to);
    } else {
      CopyShort(to, from, n * sizeof(E));
    }
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, n, *from);
  } else if (to_stride == 1 && from_stride == -1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// Returns the dimension along which the source is contiguous, if the target is contiguous along the
// last dimension and the source is not; otherwise -1.
int DimensionToTile(const StridedLoop& loop) {
  const int last = static_cast<int>(loop.dims().size()) - 1;
  if (loop.inner_stride(0) != 1 || loop.inner_stride(1) == 1 || loop.inner_stride(1) == 0)
    return -1;
  for (int d = 0; d < last; ++d) {
    if (loop.operand(1).strides[d] == 1) return d;
  }
  return -1;
}

template <typename E>
constexpr bool kHasTransposeLines = std::is_same_v<E, uint32_t> || std::is_same_v<E, uint64_t>;

// Does the work of TransposeTile with non-temporal stores. Uses TransposeLines for the parts that
// consist of whole lines on both sides. REQUIRES: `to` and its rows are aligned to cache lines
template <typename E>
void TransposeByLines(const E* from, int64_t from_row, E* to, int64_t to_row, int64_t rows,
                      int64_t columns) {
  if constexpr (kHasTransposeLines<E>) {
    const int64_t whole_rows = rows / kLineElements<E> * kLineElements<E>;
    const int64_t whole_columns = columns / kLineElements<E> * kLineElements<E>;
    TransposeLines(from, from_row, to, to_row, whole_rows, whole_columns);
    if (whole_columns < columns && whole_rows > 0) {
      TransposeTile(from + whole_columns, from_row, to + whole_columns * to_row, to_row, whole_rows,
                    columns - whole_columns, /*non_temporal=*/true);
    }
    if (whole_rows < rows) {
      TransposeTile(from + whole_rows * from_row, from_row, to + whole_rows, to_row,
                    rows - whole_rows, columns, /*non_temporal=*/true);
    }
  }
}

// Copies in tiles. The last dimension has the rows of a tile, dimension `d` its columns.
template <typename E>
void CopyTiled(const RunContext& run, const StridedLoop& loop, int d, const E* source, E* target) {
  constexpr int64_t kElementBytes = sizeof(E);
  constexpr int64_t kLine = kCacheLineBytes / kElementBytes;
  const int last = static_cast<int>(loop.dims().size()) - 1;
  const int64_t rows = loop.dims()[last];
  const int64_t columns = loop.dims()[d];
  const int64_t to_row = loop.operand(0).strides[d];
  const int64_t from_row = loop.operand(1).strides[last];
  const bool aligned =
      reinterpret_cast<uintptr_t>(target + loop.operand(0).offset) % kCacheLineBytes == 0 &&
      to_row % kLine == 0 && columns >= kLine;
  const int64_t tile_columns = rows < 4 ? kMaxTileRowBytes : kTileLines * kLine;
  const bool non_temporal =
      loop.num_elements() * static_cast<int64_t>(sizeof(E)) >= MinNonTemporalBytes();
  // Tiles begin at cache lines of the target in every dimension.
  const DimVector& to_strides = loop.operand(0).strides;
  const bool by_lines = kHasTransposeLines<E> && aligned && non_temporal && rows >= kLine &&
                        std::all_of(to_strides.begin(), to_strides.end() - 1,
                                    [](int64_t stride) { return stride % kLine == 0; });
  int64_t tile_rows = aligned ? kAlignedTileRowBytes / kElementBytes : MaxTileRows<E>(columns);
  if (by_lines) {
    tile_rows = std::clamp(kLinesTileBytes / kElementBytes / columns / kLine * kLine,
                           kLinesTileRowBytes / kElementBytes, MaxTileRows<E>(kLine));
  }
  tile_rows = std::min(tile_rows, rows);

  // A loop over the tiles. Operands 2 and 3 compute the first row and column of a tile.
  DimVector dims = loop.dims();
  std::vector<StridedLoop::Operand> operands = {loop.operand(0), loop.operand(1), {}, {}};
  operands[2].strides.resize(dims.size());
  operands[3].strides.resize(dims.size());
  operands[2].strides[last] = 1;
  operands[3].strides[d] = 1;
  for (const auto& [tiled, size] : {std::pair(d, tile_columns), std::pair(last, tile_rows)}) {
    dims[tiled] = NumBlocks(dims[tiled], size);
    for (StridedLoop::Operand& operand : operands) operand.strides[tiled] *= size;
  }
  const StridedLoop tiles(dims, std::move(operands));
  const double cost = 5.0 + static_cast<double>(tile_rows * tile_columns) * 0.5;
  tiles.ForEachRun(
      run, cost,
      [&](const int64_t* offsets, int64_t n) {
        for (int64_t t = 0; t < n; ++t) {
          const int64_t row = offsets[2] + t * tiles.inner_stride(2);
          const int64_t column = offsets[3] + t * tiles.inner_stride(3);
          const E* const from = source + offsets[1] + t * tiles.inner_stride(1);
          E* const to = target + offsets[0] + t * tiles.inner_stride(0);
          const int64_t r = std::min(tile_rows, rows - row);
          const int64_t c = std::min(tile_columns, columns - column);
          if (by_lines) {
            TransposeByLines(from, from_row, to, to_row, r, c);
          } else {
            TransposeTile(from, from_row, to, to_row, r, c, non_temporal);
          }
        }
      },
      non_temporal ? StoreFence : nullptr);
}

// Returns true if the rows of `bytes` bytes at operand 0 of the loop, in `target`, consist of a few
// whole cache lines.
template <typename E>
bool HasAlignedRows(const StridedLoop& rows, const E* target, int64_t bytes) {
  if constexpr (kIsObject<E>) return false;
  const StridedLoop::Operand& operand = rows.operand(0);
  const auto aligned = [](int64_t elements) {
    return elements * static_cast<int64_t>(sizeof(E)) % kCacheLineBytes == 0;
  };
  return bytes <= kMaxStreamedRowBytes && bytes % kCacheLineBytes == 0 &&
         reinterpret_cast<uintptr_t>(target + operand.offset) % kCacheLineBytes == 0 &&
         std::all_of(operand.strides.begin(), operand.strides.end(), aligned);
}

// Copies rows along the last dimension; a run consists of rows along the dimension before it.
template <typename E>
void CopyRows(const RunContext& run, const StridedLoop& loop, double nanoseconds_per_element,
              const E* from, E* to) {
  const int last = static_cast<int>(loop.dims().size()) - 1;
  const int64_t row = loop.dims()[last];
  const int64_t to_stride = loop.inner_stride(0);
  const int64_t from_stride = loop.inner_stride(1);
  std::vector<StridedLoop::Operand> operands = {loop.operand(0), loop.operand(1)};
  for (StridedLoop::Operand& operand : operands) operand.strides.pop_back();
  const StridedLoop rows(absl::MakeConstSpan(loop.dims()).subspan(0, last), std::move(operands));
  const double cost = 2 + static_cast<double>(row) * nanoseconds_per_element;
  const int64_t row_bytes = row * static_cast<int64_t>(sizeof(E));
  const bool contiguous = to_stride == 1 && from_stride == 1;
  if (contiguous && HasAlignedRows(rows, to, row_bytes) &&
      loop.num_elements() * static_cast<int64_t>(sizeof(E)) >= MinNonTemporalBytes()) {
    rows.ForEachRun(
        run, cost,
        [&](const int64_t* offsets, int64_t n) {
          E* target = to + offsets[0];
          const E* source = from + offsets[1];
          for (int64_t i = 0; i < n; ++i) {
            // Hardware prefetchers stop at the end of a page. Prefetches beyond the last row have
            // no effect.
            const auto* next = reinterpret_cast<const char*>(source + rows.inner_stride(1));
            for (int64_t at = 0; at < row_bytes; at += kCacheLineBytes) {
              __builtin_prefetch(next + at);
            }
            NonTemporalCopy(target, source, row_bytes);
            target += rows.inner_stride(0);
            source += rows.inner_stride(1);
          }
        },
        StoreFence);
    return;
  }
  rows.ForEachRun(run, cost, [&](const int64_t* offsets, int64_t n) {
    E* target = to + offsets[0];
    const E* source = from + offsets[1];
    for (int64_t i = 0; i < n; ++i) {
      CopyRun(source, from_stride, target, to_stride, row);
      target += rows.inner_stride(0);
      source += rows.inner_stride(1);
    }
  });
}

// ---- Many short dimensions ----
//
// The target is divided into parts of equal size. A table of the source offsets of one part is used
// for all parts. A unit is a run of bytes that are adjacent in the source and in the target.

// The maximum number of units in a part. The table of offsets stays in the L1 cache.
constexpr int64_t kMaxUnits = 1024;
constexpr int64_t kMinUnits = 8;
// Longer runs are copied by CopyRows.
constexpr int64_t kMaxUnitRunBytes = 128;

template <int kBytes>
void GatherUnits(const char* from, const int32_t* offsets, int64_t n, char* to) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * kBytes, from + offsets[i], kBytes);
}

void GatherUnits(int64_t unit, const char* from, const int32_t* offsets, int64_t n, char* to) {
  switch (unit) {
    case 1:
      return GatherUnits<1>(from, offsets, n, to);
    case 2:
      return GatherUnits<2>(from, offsets, n, to);
    case 4:
      return GatherUnits<4>(from, offsets, n, to);
    case 8:
      return GatherUnits<8>(from, offsets, n, to);
    default:
      return GatherUnits<16>(from, offsets, n, to);
  }
}

// Copies elements of `size` bytes. Returns false and copies nothing if other loops are faster.
bool CopyUnits(const RunContext& run, const StridedLoop& loop, int64_t size, const char* source,
               char* target) {
  const DimVector& dims = loop.dims();
  const DimVector& to_strides = loop.operand(0).strides;
  const DimVector& from_strides = loop.operand(1).strides;
  const int last = static_cast<int>(dims.size()) - 1;
  if (last == 0 || to_strides[last] != 1 || loop.num_elements() < kMinUnits * kMinUnits) {
    return false;
  }
  int64_t unit = size;
  // The dimensions from `first` on are in the table, with `count` units. `is_in_order` is true if
  // the table has the dimension along which the source is contiguous.
  int first = last + 1;
  int64_t count = 1;
  bool is_in_order = false;
  if (from_strides[last] == 1) {
    const int64_t bytes = dims[last] * size;
    if (bytes > kMaxUnitRunBytes) return false;
    while (unit < 16 && bytes % (2 * unit) == 0) unit *= 2;
    is_in_order = true;
  } else if (const int d = DimensionToTile(loop); d >= 0 && dims[d] * dims[last] > kMaxUnits) {
    return false;  // CopyTiled() is faster.
  }
  int64_t elements = 1;
  for (; first > 0 && count * dims[first - 1] <= kMaxUnits; --first) {
    if (to_strides[first - 1] != elements) break;
    is_in_order |= from_strides[first - 1] == 1;
    elements *= dims[first - 1];
    count = elements * size / unit;
  }
  // The table repeats for `repeats` indexes of the next dimension.
  int64_t repeats = 1;
  if (first > 0 && to_strides[first - 1] == elements) {
    repeats = std::min(dims[first - 1], kMaxUnits / count);
    is_in_order |= from_strides[first - 1] == 1 && repeats * size >= kCacheLineBytes;
  }
  if (!is_in_order || first > last || count * repeats < kMinUnits) return false;

  // The offsets of the units, in bytes.
  std::vector<int32_t> offsets;
  offsets.reserve(kMaxUnits);
  offsets.push_back(0);
  const auto add_dimension = [&](int64_t n, int64_t stride) {
    const size_t inner = offsets.size();
    for (int64_t i = 1; i < n; ++i) {
      for (size_t k = 0; k < inner; ++k) {
        offsets.push_back(static_cast<int32_t>(offsets[k] + i * stride * size));
      }
    }
  };
  constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max();
  int64_t reach = 0;
  for (int d = first; d <= last; ++d) reach += std::abs(from_strides[d]) * dims[d];
  if (first > 0) reach += std::abs(from_strides[first - 1]) * repeats;
  if (reach > kMaxOffset / size) return false;
  for (int d = last; d >= first; --d) {
    if (d == last && from_strides[d] == 1) {
      add_dimension(dims[d] * size / unit, unit / size);
    } else {
      add_dimension(dims[d], from_strides[d]);
    }
  }
  if (repeats > 1) add_dimension(repeats, from_strides[first - 1]);

  // A loop over the other dimensions. Operand 2 is the index in the dimension that `repeats`
  // divides.
  DimVector outer(dims.begin(), dims.begin() + first);
  std::vector<StridedLoop::Operand> operands;
  for (const int k : {0, 1}) {
    const DimVector& strides = loop.operand(k).strides;
    operands.push_back({loop.operand(k).offset, {strides.begin(), strides.begin() + first}});
  }
  operands.push_back({0, DimVector(outer.size())});
  const int64_t divided = first > 0 ? outer.back() : 1;
  if (first > 0) {
    operands[2].strides.back() = 1;
    outer.back() = NumBlocks(divided, repeats);
    for (StridedLoop::Operand& operand : operands) operand.strides.back() *= repeats;
  }
  const StridedLoop parts(outer, std::move(operands));
  const bool non_temporal = loop.num_elements() * size >= MinNonTemporalBytes();
  parts.ForEachRun(
      run, 0.5 * static_cast<double>(count * repeats) + 2,
      [&](const int64_t* part, int64_t n) {
        char buffer[kMaxUnits * 16];
        for (int64_t i = 0; i < n; ++i) {
          const char* const from = source + (part[1] + i * parts.inner_stride(1)) * size;
          char* const to = target + (part[0] + i * parts.inner_stride(0)) * size;
          const int64_t index = part[2] + i * parts.inner_stride(2);
          const int64_t units = count * std::min(repeats, divided - index);
          if (non_temporal) {
            GatherUnits(unit, from, offsets.data(), units, buffer);
            NonTemporalCopy(to, buffer, static_cast<size_t>(units * unit));
          } else {
            GatherUnits(unit, from, offsets.data(), units, to);
          }
        }
      },
      non_temporal ? StoreFence : nullptr);
  return true;
}

// Copies operand 1 of the loop, the source, to operand 0, the target.
void CopyLoop(const RunContext& run, const StridedLoop& loop, const Tensor& source,
              Tensor* target) {
  // Longer rows are split into several runs.
  constexpr int64_t kMaxRow = 8 * 1024;
  if (loop.num_elements() == 0) return;
  DispatchElement(source.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const E* from = static_cast<const E*>(source.raw_data());
    E* to = static_cast<E*>(target->raw_data());
    if constexpr (!kIsObject<E>) {
      if (CopyUnits(run, loop, sizeof(E), reinterpret_cast<const char*>(from),
                    reinterpret_cast<char*>(to))) {
        return;
      }
      if (const int d = DimensionToTile(loop); d >= 0) return CopyTiled(run, loop, d, from, to);
    }
    const int64_t to_stride = loop.inner_stride(0);
    const int64_t from_stride = loop.inner_stride(1);
    const bool contiguous = to_stride == 1 && (from_stride == 1 || from_stride == 0);
    const double cost = NanosecondsPerElement(source, contiguous);
    // Strings and other objects can be long, so each row is a run, which may be split.
    if (!kIsObject<E> && loop.dims().size() > 1 && loop.dims().back() <= kMaxRow) {
      return CopyRows(run, loop, cost, from, to);
    }
    loop.ForEachRun(run, cost, [&](const int64_t* offsets, int64_t n) {
      CopyRun(from + offsets[1], from_stride, to + offsets[0], to_stride, n);
    });
  });
}

}  // namespace

DimVector RowMajorStrides(absl::Span<const int64_t> dims) {
  DimVector strides(dims.size());
  // The product of some dimensions of an empty tensor may overflow.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return strides;
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  return strides;
}

DimVector BroadcastStrides(absl::Span<const int64_t> dims, absl::Span<const int64_t> to) {
  const DimVector own = RowMajorStrides(dims);
  DimVector strides(to.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != 1) strides[to.size() - dims.size() + d] = own[d];
  }
  return strides;
}

StridedLoop::StridedLoop(absl::Span<const int64_t> dims, std::vector<Operand> operands)
    : operands_(operands.size()), num_elements_(1) {
  const size_t count = operands.size();
  for (size_t k = 0; k < count; ++k) operands_[k].offset = operands[k].offset;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) {
    num_elements_ = 0;
    dims = {};
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    num_elements_ *= dims[d];
    bool joins = !dims_.empty();
    for (size_t k = 0; joins && k < count; ++k) {
      joins = operands_[k].strides.back() == operands[k].strides[d] * dims[d];
    }
    if (joins) {
      dims_.back() *= dims[d];
    } else {
      dims_.push_back(dims[d]);
    }
    for (size_t k = 0; k < count; ++k) {
      if (joins) {
        operands_[k].strides.back() = operands[k].strides[d];
      } else {
        operands_[k].strides.push_back(operands[k].strides[d]);
      }
    }
  }
  if (dims_.empty()) {
    dims_.push_back(num_elements_);
    for (Operand& operand : operands_) operand.strides.push_back(1);
  }
}

void StridedLoop::ForEachRun(const RunContext& run, double nanoseconds_per_element,
                             absl::FunctionRef<void(const int64_t* offsets, int64_t n)> fn,
                             void (*end_of_block)()) const {
  if (num_elements_ == 0) return;
  const size_t count = operands_.size();
  const int last = static_cast<int>(dims_.size()) - 1;
  // A unit of work is one run: a row of the last dimension, or a part of a long row.
  const int64_t row = dims_[last];
  const int64_t per_block = BlockSizeForCost(nanoseconds_per_element);
  const int64_t per_unit = std::min(row, per_block);
  const int64_t units_per_row = NumBlocks(row, per_unit);
  const int64_t units = num_elements_ / row * units_per_row;
  ParallelFor(run, units, std::max<int64_t>(1, per_block / per_unit),
              [&](int64_t begin, int64_t end) {
                DimVector index(last);
                absl::InlinedVector<int64_t, 4> row_offsets(count);
                absl::InlinedVector<int64_t, 4> offsets(count);
                for (size_t k = 0; k < count; ++k) row_offsets[k] = operands_[k].offset;
                int64_t rest = begin / units_per_row;
                for (int d = last - 1; d >= 0; --d) {
                  index[d] = rest % dims_[d];
                  rest /= dims_[d];
                  for (size_t k = 0; k < count; ++k)
                    row_offsets[k] += index[d] * operands_[k].strides[d];
                }
                int64_t part = begin % units_per_row;
                for (int64_t unit = begin; unit < end; ++unit) {
                  const int64_t start = part * per_unit;
                  for (size_t k = 0; k < count; ++k) {
                    offsets[k] = row_offsets[k] + start * operands_[k].strides[last];
                  }
                  fn(offsets.data(), std::min(per_unit, row - start));
                  if (++part < units_per_row) continue;
                  part = 0;
                  // Advances to the next row.
                  for (int d = last - 1; d >= 0; --d) {
                    const bool wraps = ++index[d] == dims_[d];
                    for (size_t k = 0; k < count; ++k) {
                      const int64_t stride = operands_[k].strides[d];
                      row_offsets[k] += wraps ? stride - stride * dims_[d] : stride;
                    }
                    if (!wraps) break;
                    index[d] = 0;
                  }
                }
                if (end_of_block != nullptr) end_of_block();
              });
}

double StridedStringBytes(const RunContext& run, const StridedLoop& loop, const Tensor& source) {
  if (source.dtype() != DT_STRING || loop.num_elements() == 0) return 0;
  // Dimensions of stride 0 repeat the strings of the other dimensions. Without them, no string
  // occurs twice, so the loop is no longer than the source.
  double repeats = 1;
  DimVector dims;
  StridedLoop::Operand from{loop.operand(1).offset, {}};
  for (size_t d = 0; d < loop.dims().size(); ++d) {
    const int64_t stride = loop.operand(1).strides[d];
    if (stride == 0) {
      repeats *= static_cast<double>(loop.dims()[d]);
    } else {
      dims.push_back(loop.dims()[d]);
      from.strides.push_back(stride);
    }
  }
  const auto strings = source.span<tstring>();
  std::atomic<int64_t> bytes{0};
  const StridedLoop distinct(dims, {std::move(from)});
  distinct.ForEachRun(run, 1, [&](const int64_t* offsets, int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += static_cast<int64_t>(strings[offsets[0] + i * distinct.inner_stride(0)].size());
    }
    bytes.fetch_add(sum, std::memory_order_relaxed);
  });
  return static_cast<double>(bytes.load()) * repeats;
}

double InputStringBytes(const KernelContext& ctx, int begin, int end) {
  double bytes = 0;
  for (int i = begin; i < end; ++i) bytes += static_cast<double>(ctx.input(i).StringBytes());
  return bytes;
}

void CopyStrided(const RunContext& run, absl::Span<const int64_t> dims, const Tensor& source,
                 StridedLoop::Operand from, Tensor* target, StridedLoop::Operand to) {
  CopyLoop(run, StridedLoop(dims, {std::move(to), std::move(from)}), source, target);
}

void FillStrided(const RunContext& run, absl::Span<const int64_t> dims, const Tensor& value,
                 Tensor* target, StridedLoop::Operand to) {
  CopyStrided(run, dims, value, {0, DimVector(dims.size())}, target, std::move(to));
}

void FillAll(const RunContext& run, const Tensor& value, Tensor* target) {
  const absl::Span<const int64_t> dims = target->shape().dim_sizes();
  FillStrided(run, dims, value, target, {0, RowMajorStrides(dims)});
}

void SetZero(const RunContext& run, Tensor* target) {
  const int64_t n = target->NumElements();
  ParallelFor(run, n, BlockSizeForCost(CopyNanoseconds(target->dtype())),
              [&](int64_t begin, int64_t end) { ClearElements(target, begin, end - begin); });
}

void CopyElements(const Tensor& source, int64_t from, Tensor* target, int64_t to, int64_t n) {
  if (n == 0) return;
  const bool has_objects = DispatchType(ObjectTypes(), source.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    std::copy_n(static_cast<const E*>(source.raw_data()) + from, n,
                static_cast<E*>(target->raw_data()) + to);
  });
  if (has_objects) return;
  const int64_t size = DataTypeSize(source.dtype());
  std::memcpy(static_cast<char*>(target->raw_data()) + to * size,
              static_cast<const char*>(source.raw_data()) + from * size, n * size);
}

void ClearElements(Tensor* target, int64_t begin, int64_t n) {
  if (n == 0) return;
  const bool has_objects = DispatchType(ObjectTypes(), target->dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    std::fill_n(static_cast<E*>(target->raw_data()) + begin, n, E());
  });
  if (has_objects) return;
  // In every type of plain bytes, zero has all bits zero.
  const int64_t size = DataTypeSize(target->dtype());
  std::memset(static_cast<char*>(target->raw_data()) + begin * size, 0, n * size);
}

absl::StatusOr<Tensor> ZeroScalar(DataType dtype) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor zero, Tensor::Allocate(dtype, {}));
  SetZero(RunContext(), &zero);
  return zero;
}

absl::Status OutputCopy(KernelContext& ctx, int input, Tensor** output) {
  const TensorShape& shape = ctx.input(input).shape();
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(input, 0, shape, output));
  const Tensor& source = ctx.input(input);
  if ((*output)->raw_data() == source.raw_data()) return absl::OkStatus();
  const DimVector strides = RowMajorStrides(shape.dim_sizes());
  CopyStrided(ctx.run(), shape.dim_sizes(), source, {0, strides}, *output, {0, strides});
  return absl::OkStatus();
}

absl::Status OutputStrided(KernelContext& ctx, int output, const TensorShape& shape,
                           absl::Span<const int64_t> dims, int input, StridedLoop::Operand from) {
  const Tensor& source = ctx.input(input);
  const StridedLoop loop(dims, {{0, RowMajorStrides(dims)}, std::move(from)});
  const int64_t n = loop.num_elements();
  if (n > 0 && loop.dims().size() == 1 && (n == 1 || loop.inner_stride(1) == 1)) {
    const int64_t begin = loop.operand(1).offset;
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor flat, source.Reshaped({source.NumElements()}));
    const Tensor run = flat.Slice(begin, begin + n);
    if (run.IsAligned()) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor shaped, run.Reshaped(shape));
      ctx.set_output(output, std::move(shaped));
      return absl::OkStatus();
    }
  }
  ctx.ExpectStringBytes(StridedStringBytes(ctx.run(), loop, source));
  Tensor* target = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(output, shape, &target));
  CopyLoop(ctx.run(), loop, source, target);
  return absl::OkStatus();
}

}  // namespace gradflow
