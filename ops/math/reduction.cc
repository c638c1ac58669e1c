#include "gradflow/ops/math/reduction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

// The maximum number of accumulators of a tile. They fit in the L1 cache.
constexpr int64_t kMaxLanes = 1024;
// Narrower rows are folded: several rows are processed as one wide row.
constexpr int64_t kWideRow = 64;
// The maximum length of runs that are treated as columns instead of being reduced one at a time.
constexpr int64_t kShortRun = 32;
// If a reduction has fewer than kEnoughTasks tiles, its rows are split into at most kMaxBlocks
// blocks of at least kMinBlockElements elements.
constexpr int64_t kEnoughTasks = 64;
constexpr int64_t kMinBlockElements = 1 << 17;
constexpr int64_t kMaxBlocks = 256;

// A dimension of the simplified input. The stride is in elements.
struct Dim {
  int64_t size;
  int64_t stride;
};
using Dims = absl::InlinedVector<Dim, 4>;

// Returns the offset of element `index`, in row-major order, of an array with these dimensions.
int64_t OffsetOf(const Dims& dims, int64_t index) {
  int64_t offset = 0;
  for (size_t d = dims.size(); d-- > 1;) {
    offset += index % dims[d].size * dims[d].stride;
    index /= dims[d].size;
  }
  return dims.empty() ? 0 : offset + index * dims[0].stride;
}

int64_t Product(const Dims& dims) {
  int64_t product = 1;
  for (const Dim& dim : dims) product *= dim.size;
  return product;
}

// The simplified input. Its innermost part is a run of `run` rows of `width` elements, which is
// reduced to one row. The outer dimensions are in `kept` or in `reduced`. Adjacent dimensions of
// the input are merged if all of them are kept or all of them are reduced.
struct ReductionLayout {
  Dims kept;
  Dims reduced;
  int64_t run = 1;
  int64_t width = 1;
  // The stride between rows, and between the elements of a row.
  int64_t row_stride = 1;
  int64_t stride = 1;
};

ReductionLayout MakeLayout(const TensorShape& shape, const std::vector<bool>& reduced, int parts) {
  absl::InlinedVector<std::pair<int64_t, bool>, 4> merged;
  const auto add = [&](int64_t size, bool is_reduced) {
    if (size == 1) return;
    if (!merged.empty() && merged.back().second == is_reduced) {
      merged.back().first *= size;
    } else {
      merged.emplace_back(size, is_reduced);
    }
  };
  for (int d = 0; d < shape.dims(); ++d) add(shape.dim_size(d), reduced[d]);
  add(parts, false);
  ReductionLayout layout;
  if (!merged.empty() && !merged.back().second) {
    layout.width = merged.back().first;
    merged.pop_back();
  }
  if (!merged.empty()) {
    layout.run = merged.back().first;
    merged.pop_back();
  }
  int64_t stride = layout.run * layout.width;
  for (; !merged.empty(); merged.pop_back()) {
    const auto [size, is_reduced] = merged.back();
    Dims& dims = is_reduced ? layout.reduced : layout.kept;
    dims.insert(dims.begin(), {size, stride});
    stride *= size;
  }
  layout.row_stride = layout.width;
  if (layout.width == 1 && layout.run <= kShortRun && !layout.kept.empty()) {
    // Each short run is reduced to one element. Treating the runs as columns processes many at a
    // time.
    layout.width = layout.kept.back().size;
    layout.stride = layout.run;
    layout.kept.pop_back();
  }
  return layout;
}

// A reduction whose result is not empty. Each result is a row of `width` elements, which is
// computed in tiles of columns. If there are too few tiles to keep the threads busy, the rows to
// reduce are also split into blocks.
class Reduction {
 public:
  Reduction(const Reducer& reducer, ReductionLayout layout, int64_t count, const void* x, void* out)
      : reducer_(reducer),
        layout_(std::move(layout)),
        count_(count),
        x_(static_cast<const char*>(x)),
        out_(static_cast<char*>(out)),
        results_(Product(layout_.kept)),
        rows_(Product(layout_.reduced) * layout_.run) {
    fold_ = layout_.stride != 1 || layout_.run == 0
                ? 1
                : std::clamp<int64_t>(kWideRow / layout_.width, 1, layout_.run);
    tile_ = std::min(layout_.width, kMaxLanes);
    tiles_ = results_ * NumBlocks(layout_.width, tile_);
    block_rows_ = std::max<int64_t>(rows_, 1);
    if (tiles_ < kEnoughTasks) {
      block_rows_ = std::max(NumBlocks(kMinBlockElements, tile_), NumBlocks(rows_, kMaxBlocks));
    }
    blocks_ = std::max<int64_t>(1, NumBlocks(rows_, block_rows_));
  }

  absl::Status Run(KernelContext& ctx) const {
    const double tile_nanoseconds = 0.5 * tile_ * std::min(rows_, block_rows_) + 20;
    const int64_t tasks_per_block = BlockSizeForCost(tile_nanoseconds);
    if (blocks_ == 1) {
      ParallelFor(ctx, tiles_, tasks_per_block, [&](int64_t begin, int64_t end) {
        alignas(64) char accumulators[kMaxLanes * Reducer::kMaxAccumulatorSize];
        for (int64_t tile = begin; tile < end; ++tile) {
          Accumulate(tile, 0, accumulators);
          Finish(tile, accumulators);
        }
      });
      return absl::OkStatus();
    }
    // The accumulators of the blocks, ordered by tile. There are fewer accumulators than input
    // elements, so the product does not overflow.
    const int64_t stride = tile_ * reducer_.accumulator_size;
    Tensor partial;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_UINT8, {tiles_ * blocks_ * stride}, &partial));
    char* partials = static_cast<char*>(partial.raw_data());
    ParallelFor(ctx, tiles_ * blocks_, tasks_per_block, [&](int64_t begin, int64_t end) {
      alignas(64) char accumulators[kMaxLanes * Reducer::kMaxAccumulatorSize];
      for (int64_t task = begin; task < end; ++task) {
        Accumulate(task / blocks_, task % blocks_, accumulators);
        std::copy_n(accumulators, Columns(task / blocks_) * reducer_.accumulator_size,
                    partials + task * stride);
      }
    });
    ParallelFor(ctx, tiles_, BlockSizeForCost(1.0 * tile_ * blocks_),
                [&](int64_t begin, int64_t end) {
                  for (int64_t tile = begin; tile < end; ++tile) {
                    char* first = partials + tile * blocks_ * stride;
                    for (int64_t block = 1; block < blocks_; ++block) {
                      reducer_.merge(first + block * stride, Columns(tile), first);
                    }
                    Finish(tile, first);
                  }
                });
    return absl::OkStatus();
  }

 private:
  int64_t TilesPerResult() const { return tiles_ / results_; }
  int64_t FirstColumn(int64_t tile) const { return tile % TilesPerResult() * tile_; }
  int64_t Columns(int64_t tile) const { return std::min(tile_, layout_.width - FirstColumn(tile)); }

  // Accumulates the rows of a block for the columns of a tile.
  void Accumulate(int64_t tile, int64_t block, char* accumulators) const {
    const int64_t width = layout_.width;
    const int64_t columns = Columns(tile);
    const int64_t origin =
        OffsetOf(layout_.kept, tile / TilesPerResult()) + FirstColumn(tile) * layout_.stride;
    reducer_.clear(columns * fold_, accumulators);
    const int64_t end = std::min(rows_, (block + 1) * block_rows_);
    for (int64_t row = block * block_rows_; row < end;) {
      const int64_t in_run = row % layout_.run;
      const int64_t rows = std::min(layout_.run - in_run, end - row);
      const int64_t offset =
          origin + OffsetOf(layout_.reduced, row / layout_.run) + in_run * layout_.row_stride;
      const char* x = x_ + offset * reducer_.element_size;
      if (fold_ == 1) {
        reducer_.add(x, rows, layout_.row_stride, columns, layout_.stride, accumulators);
      } else {
        // The tile has all columns, so its rows are contiguous.
        const int64_t wide = fold_ * width;
        reducer_.add(x, rows / fold_, wide, wide, 1, accumulators);
        if (const int64_t rest = rows % fold_ * width; rest > 0) {
          reducer_.add(x + (rows * width - rest) * reducer_.element_size, 1, 0, rest, 1,
                       accumulators);
        }
      }
      row += rows;
    }
    // Merges the folded rows of the wide row: repeatedly merges the second half into the first
    // half.
    for (int64_t fold = fold_; fold > 1;) {
      const int64_t half = (fold + 1) / 2;
      reducer_.merge(accumulators + half * width * reducer_.accumulator_size, (fold - half) * width,
                     accumulators);
      fold = half;
    }
  }

  void Finish(int64_t tile, const char* accumulators) const {
    const int64_t offset = tile / TilesPerResult() * layout_.width + FirstColumn(tile);
    reducer_.finish(accumulators, count_, Columns(tile), out_ + offset * reducer_.element_size);
  }

  const Reducer& reducer_;
  const ReductionLayout layout_;
  // The number of input elements that each output element combines.
  const int64_t count_;
  const char* const x_;
  char* const out_;
  // The number of rows of `width` elements in the output, and the number of input rows for each of
  // them.
  const int64_t results_;
  const int64_t rows_;
  // The number of rows that are folded into one wide row.
  int64_t fold_;
  // The number of columns of a tile, and the number of tiles.
  int64_t tile_;
  int64_t tiles_;
  // The number of rows of a block, and the number of blocks of a tile.
  int64_t block_rows_;
  int64_t blocks_;
};

}  // namespace

absl::Status Reduce(KernelContext& ctx, const Reducer& reducer, bool keep_dims) {
  constexpr char kAxes[] = "reduction_indices";
  const Tensor& input = ctx.input(0);
  if (input.dtype() != ctx.expected_output_dtype(0)) {
    return errors::InvalidArgument("input must be of type ",
                                   DataTypeString(ctx.expected_output_dtype(0)), ", but is ",
                                   DataTypeString(input.dtype()));
  }
  GRADFLOW_RETURN_IF_ERROR(CheckReductionAxes(kAxes, ctx.input(1).shape(), input.dims()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector axes, ctx.Ints(1, kAxes));
  std::vector<bool> reduced;
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ReducedDims(kAxes, input.shape().dim_sizes(),
                                                              axes, keep_dims, &reduced));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  const int64_t results = shape.num_elements();
  if (results == input.NumElements() && reducer.keeps_one) {
    // Each result reduces a single element and equals this element.
    GRADFLOW_ASSIGN_OR_RETURN(Tensor same, input.Reshaped(shape));
    ctx.set_output(0, std::move(same));
    return absl::OkStatus();
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  return ReduceTensor(ctx, reducer, input, reduced, output);
}

absl::Status ReduceTensor(KernelContext& ctx, const Reducer& reducer, const Tensor& input,
                          const std::vector<bool>& reduced, Tensor* output) {
  const int64_t results = output->NumElements();
  if (results == 0) return absl::OkStatus();
  ReductionLayout layout;
  if (input.NumElements() > 0) {
    layout = MakeLayout(input.shape(), reduced, reducer.parts);
  } else {
    // Each result reduces zero elements.
    layout.run = 0;
    layout.width = results * reducer.parts;
  }
  return Reduction(reducer, std::move(layout), input.NumElements() / results, input.raw_data(),
                   output->raw_data())
      .Run(ctx);
}

void RegisterReductionOp(Registry& registry, absl::string_view op, absl::string_view alias,
                         absl::string_view types, absl::string_view doc) {
  auto builder = registry.Op(op);
  if (!alias.empty()) builder.Alias(alias);
  const absl::string_view type = types.empty() ? "bool" : "T";
  builder.Group("math_ops")
      .Rename("reduction_indices", "axis")
      .Input(absl::StrCat("input: ", type))
      .Input("reduction_indices: Tidx")
      .Output(absl::StrCat("output: ", type))
      .Attr("keep_dims: bool = false");
  if (!types.empty()) builder.Attr(absl::StrCat("T: ", types));
  builder.Attr("Tidx: {int32, int64} = DT_INT32").Shape(ReductionShape).Doc(doc);
}

}  // namespace gradflow
