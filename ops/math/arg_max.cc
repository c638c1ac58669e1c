// ArgMax and ArgMin.
//
// The input is viewed as [outer, n, inner] around the axis. Rows of `inner` elements are compared
// element by element with the best elements so far. A single column is folded into kLanes columns;
// at the end, the best of these is selected. The order of comparisons does not affect the result,
// because the first of equal elements wins.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/math/reduction.h"

namespace gradflow::arg_max {
namespace {

// The number of columns of a tile. Its best elements and their rows stay in the L1 cache.
constexpr int64_t kTile = 512;
// The number of columns that a long single column is folded into.
constexpr int64_t kLanes = 64;
// The number of rows to prefetch ahead.
constexpr int64_t kAhead = 8;
// An axis is split into blocks if there are fewer than kEnoughTasks tiles.
constexpr int64_t kEnoughTasks = 64;
constexpr int64_t kMinBlockElements = 1 << 15;
constexpr int64_t kMaxBlocks = 256;

template <bool kMax, typename C>
bool Precedes(C x, C best) {
  if constexpr (kMax) {
    return (x > best) | ((best != best) & (x == x));
  } else {
    return (x < best) | ((best != best) & (x == x));
  }
}

// The best elements of columns, and their rows.
template <typename T>
struct Best {
  using C = ComputeType<T>;
  // As wide as the element, so that the compiler vectorizes comparisons.
  using Row = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  // The maximum number of rows that `row` can count.
  static constexpr int64_t kMaxRows = int64_t{1} << 30;

  C value[kTile];
  Row row[kTile];

  // Compares `rows` rows of `columns` elements. Rows are `stride` elements apart.
  // REQUIRES: 0 < rows <= kMaxRows
  template <bool kMax>
  void Compare(const T* x, int64_t rows, int64_t stride, int64_t columns) {
    for (int64_t j = 0; j < columns; ++j) {
      value[j] = static_cast<C>(x[j]);
      row[j] = 0;
    }
    for (int64_t r = 1; r < rows; ++r) {
      const T* elements = x + r * stride;
      const Row here = static_cast<Row>(r);
      if (r + kAhead < rows) internal::Prefetch(elements + kAhead * stride, columns);
      for (int64_t j = 0; j < columns; ++j) {
        const C element = static_cast<C>(elements[j]);
        const bool better = Precedes<kMax>(element, value[j]);
        value[j] = better ? element : value[j];
        row[j] = better ? here : row[j];
      }
    }
  }
};

// The input viewed as [outer, n, inner] around the axis.
struct View {
  int64_t outer;
  int64_t n;
  int64_t inner;
};

template <typename T, bool kMax>
class Search {
 public:
  using C = ComputeType<T>;

  Search(const T* x, const View& view) : x_(x), view_(view) {
    tile_ = std::min(view.inner, kTile);
    tiles_ = NumBlocks(view.inner, tile_);
    block_rows_ = std::min(view.n, Best<T>::kMaxRows);
    if (view.outer * tiles_ < kEnoughTasks) {
      block_rows_ = std::min(block_rows_, std::max(NumBlocks(kMinBlockElements, tile_),
                                                   NumBlocks(view.n, kMaxBlocks)));
    }
    blocks_ = NumBlocks(view.n, block_rows_);
  }

  // Sets index[outer, inner] to the positions of the best elements.
  absl::Status Run(KernelContext& ctx, int64_t* index) const {
    const int64_t size = view_.outer * view_.inner;
    const double nanoseconds = 1.0 * tile_ * block_rows_ + 20;
    if (blocks_ == 1) {
      ParallelFor(ctx, view_.outer * tiles_, BlockSizeForCost(nanoseconds),
                  [&](int64_t begin, int64_t end) {
                    C values[kTile];
                    for (int64_t task = begin; task < end; ++task) {
                      SearchBlock(task / tiles_, task % tiles_, 0, values,
                                  index + task / tiles_ * view_.inner + task % tiles_ * tile_);
                    }
                  });
      return absl::OkStatus();
    }
    // The results of each block. The results of one block have the size of the output.
    Tensor values;
    Tensor indices;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DataTypeToEnum<C>::value, {blocks_, size}, &values));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {blocks_, size}, &indices));
    C* const best = static_cast<C*>(values.raw_data());
    int64_t* const where = static_cast<int64_t*>(indices.raw_data());
    ParallelFor(ctx, view_.outer * tiles_ * blocks_, BlockSizeForCost(nanoseconds),
                [&](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t block = task % blocks_;
                    const int64_t tile = task / blocks_;
                    const int64_t offset =
                        block * size + tile / tiles_ * view_.inner + tile % tiles_ * tile_;
                    SearchBlock(tile / tiles_, tile % tiles_, block, best + offset, where + offset);
                  }
                });
    ParallelFor(ctx, size, BlockSizeForCost(1.0 * blocks_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        C value = best[i];
        index[i] = where[i];
        for (int64_t block = 1; block < blocks_; ++block) {
          const int64_t at = block * size + i;
          if (Precedes<kMax>(best[at], value)) {
            value = best[at];
            index[i] = where[at];
          }
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // Finds the best elements of a tile's columns within the rows of a block.
  void SearchBlock(int64_t outer, int64_t tile, int64_t block, C* values, int64_t* index) const {
    const int64_t first = block * block_rows_;
    const int64_t rows = std::min(block_rows_, view_.n - first);
    const int64_t column = tile * tile_;
    const int64_t columns = std::min(tile_, view_.inner - column);
    const T* x = x_ + (outer * view_.n + first) * view_.inner + column;
    Best<T> best;
    if (view_.inner > 1 || rows < 2 * kLanes) {
      best.template Compare<kMax>(x, rows, view_.inner, columns);
      for (int64_t j = 0; j < columns; ++j) {
        values[j] = best.value[j];
        index[j] = first + best.row[j];
      }
      return;
    }
    const int64_t wide_rows = rows / kLanes;
    best.template Compare<kMax>(x, wide_rows, kLanes, kLanes);
    values[0] = best.value[0];
    index[0] = best.row[0] * kLanes;
    for (int64_t j = 1; j < kLanes; ++j) {
      const int64_t at = best.row[j] * kLanes + j;
      const bool equal =
          !Precedes<kMax>(best.value[j], values[0]) && !Precedes<kMax>(values[0], best.value[j]);
      if (Precedes<kMax>(best.value[j], values[0]) || (equal && at < index[0])) {
        values[0] = best.value[j];
        index[0] = at;
      }
    }
    for (int64_t i = wide_rows * kLanes; i < rows; ++i) {
      const C element = static_cast<C>(x[i]);
      if (Precedes<kMax>(element, values[0])) {
        values[0] = element;
        index[0] = i;
      }
    }
    index[0] += first;
  }

  const T* const x_;
  const View view_;
  // The number of columns of a tile, and of tiles of a row.
  int64_t tile_;
  int64_t tiles_;
  // The number of rows of a block, and of blocks of a column.
  int64_t block_rows_;
  int64_t blocks_;
};

absl::Status ArgShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  const int rank = c.input(0).dims();
  if (rank < 0) return absl::OkStatus();
  if (rank == 0) {
    // Graphs may have such nodes. The kernel returns an error.
    c.set_output(0, TensorShape());
    return absl::OkStatus();
  }
  std::vector<int64_t> dimension;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &dimension));
  if (!known) {
    c.set_output(0, PartialTensorShape::UnknownOfRank(rank - 1));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("dimension", dimension[0], rank));
  DimVector dims;
  for (int d = 0; d < rank; ++d) {
    if (d != axis) dims.push_back(c.Dim(0, d));
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Converts indices to the output type, which keeps their low bits.
template <typename Index>
void Narrow(KernelContext& ctx, const int64_t* index, Tensor* output) {
  Index* out = static_cast<Index*>(output->raw_data());
  ParallelFor(ctx, output->NumElements(), BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<Index>(index[i]);
  });
}

template <bool kMax>
absl::Status ArgSearch(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  if (input.dims() < 1) return errors::InvalidArgument("input must have rank 1 at least");
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t dimension, ctx.ScalarInt(1, "dimension"));
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("dimension", dimension, input.dims()));
  View view = {1, input.dim_size(axis), 1};
  DimVector dims;
  for (int d = 0; d < input.dims(); ++d) {
    if (d != axis) dims.push_back(input.dim_size(d));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  if (view.n == 0) {
    return errors::InvalidArgument("dimension ", dimension, " of input is empty: the shape is ",
                                   input.shape().DebugString());
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (shape.num_elements() == 0) return absl::OkStatus();
  for (int d = 0; d < axis; ++d) view.outer *= input.dim_size(d);
  for (int d = axis + 1; d < input.dims(); ++d) view.inner *= input.dim_size(d);

  Tensor wide;
  const bool is_wide = output->dtype() == DT_INT64;
  if (!is_wide) GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, shape, &wide));
  int64_t* index = static_cast<int64_t*>((is_wide ? *output : wide).raw_data());
  absl::Status status =
      errors::InvalidArgument("input must not be of type ", DataTypeString(input.dtype()));
  const auto search = [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Search<T, kMax>(static_cast<const T*>(input.raw_data()), view).Run(ctx, index);
  };
  if (input.dtype() == DT_BOOL) {
    search(TypeTag<uint8_t>());
  } else {
    DispatchType(RealTypes(), input.dtype(), search);
  }
  GRADFLOW_RETURN_IF_ERROR(status);
  if (output->dtype() == DT_INT32) Narrow<uint32_t>(ctx, index, output);
  if (DataTypeSize(output->dtype()) == 2) Narrow<uint16_t>(ctx, index, output);
  return absl::OkStatus();
}

constexpr char kTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, "
    "qint8, quint8, qint32, qint16, quint16, bool}";

}  // namespace

void Register(Registry& registry) {
  registry.Op("ArgMax")
      .Group("math_ops")
      .Input("input: T")
      .Input("dimension: Tidx")
      .Output("output: output_type")
      .Attr(kTypes)
      .Attr("Tidx: {int16, int32, int64} = DT_INT32")
      .Attr("output_type: {int16, uint16, int32, int64} = DT_INT64")
      .Shape(ArgShape)
      .Doc(R"(Returns the index of the largest element along an axis of a tensor.

If elements are equal, the first one wins. NaN is smaller than any number.

input: A tensor.
dimension: The axis, in [-rank(input), rank(input)). It must not be empty.
output: The indices, without the axis. Indices that exceed the type keep their low bits.
T: The type of `input`; there are no kernels for quantized types.
Tidx: The type of `dimension`.
output_type: The type of the indices.)");
  registry.Op("ArgMin")
      .Group("math_ops")
      .Input("input: T")
      .Input("dimension: Tidx")
      .Output("output: output_type")
      .Attr(kTypes)
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("output_type: {int32, int64} = DT_INT64")
      .Shape(ArgShape)
      .Doc(R"(Returns the index of the smallest element along an axis of a tensor.

If elements are equal, the first one wins. NaN is larger than any number.

input: A tensor.
dimension: The axis, in [-rank(input), rank(input)). It must not be empty.
output: The indices, without the axis. Indices that exceed the type keep their low bits.
T: The type of `input`; there are no kernels for quantized types.
Tidx: The type of `dimension`.
output_type: The type of the indices.)");
  DataTypeVector types = DataTypesOf(RealTypes());
  types.push_back(DT_BOOL);
  registry.Kernel("ArgMax", MakeFunctionKernel<ArgSearch<true>>).Types("T", types);
  registry.Kernel("ArgMin", MakeFunctionKernel<ArgSearch<false>>).Types("T", types);
}

}  // namespace gradflow::arg_max
