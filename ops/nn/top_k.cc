// TopK, TopKV2 and NthElement: order statistics of rows.
//
// Elements are ordered by value, and equal elements by index, so results do not depend on the
// algorithm. NaN is smaller than all numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow::top_k {
namespace {

// The number of steps between two checks for a stop of the run.
constexpr int64_t kStepsPerLook = int64_t{1} << 16;

// Returns true if x is greater than y.
template <typename C>
bool IsGreater(C x, C y) {
  return x > y || (y != y && x == x);
}

// Returns true if any of n elements is greater than y. Has no branches, so that the compiler
// vectorizes the loop.
template <typename T, typename C>
bool AnyIsGreater(const T* x, int64_t n, C y) {
  int any = 0;
  if (y != y) {
    for (int64_t i = 0; i < n; ++i)
      any |= static_cast<int>(static_cast<C>(x[i]) == static_cast<C>(x[i]));
  } else {
    for (int64_t i = 0; i < n; ++i) any |= static_cast<int>(static_cast<C>(x[i]) > y);
  }
  return any != 0;
}

// Returns `input` without its last dimension or, if `replace` is true, with `size` as its last
// dimension.
// REQUIRES: the rank is at least 1
absl::StatusOr<PartialTensorShape> WithoutLast(const PartialTensorShape& input, bool replace,
                                               int64_t size) {
  DimVector dims(input.dim_sizes().begin(), input.dim_sizes().end() - 1);
  if (replace) dims.push_back(size);
  return PartialTensorShape::Make(dims);
}

// ---- TopK ----

// Checks k and returns the shape of the outputs. k is -1 if unknown. REQUIRES: CheckRank
absl::StatusOr<PartialTensorShape> TopKShape(const PartialTensorShape& input, bool is_known,
                                             int64_t k) {
  if (is_known && k < 0) return errors::InvalidArgument("k must not be negative, but is ", k);
  if (input.unknown_rank()) return PartialTensorShape();
  const int64_t columns = input.dim_size(input.dims() - 1);
  if (is_known && columns >= 0 && k > columns) {
    return errors::InvalidArgument("k must be at most ", columns, ", the last dimension of input ",
                                   input.DebugString(), ", but is ", k);
  }
  return WithoutLast(input, true, is_known ? k : -1);
}

absl::Status SetTopKShape(ShapeContext& c, bool is_known, int64_t k) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, TopKShape(c.input(0), is_known, k));
  c.set_output(0, shape);
  c.set_output(1, std::move(shape));
  return absl::OkStatus();
}

absl::Status TopKAttrShape(ShapeContext& c) {
  int64_t k = 0;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("k", &k));
  return SetTopKShape(c, true, k);
}

absl::Status TopKInputShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  std::vector<int64_t> k = {-1};
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &k));
  return SetTopKShape(c, known, k[0]);
}

// The order of the outputs, as an order of indices of x: descending values, then ascending indices.
template <typename T, typename Index>
struct Precedes {
  using C = ComputeType<T>;
  bool operator()(Index i, Index j) const {
    const C a = static_cast<C>(x[i]);
    const C b = static_cast<C>(x[j]);
    return IsGreater(a, b) || (!IsGreater(b, a) && i < j);
  }

  const T* x;
};

// Sets index[k] to the first k of the indices [begin, end), as a heap with the last one at its top.
// If the run is stopped, sets it to any indices. REQUIRES: 0 < k <= end - begin
template <typename T, typename Index>
void SelectBlock(const RunContext& run, const T* x, int64_t begin, int64_t end, int64_t k,
                 Index* index) {
  using C = ComputeType<T>;
  const Precedes<T, Index> precedes = {x};
  std::iota(index, index + k, static_cast<Index>(begin));
  std::make_heap(index, index + k, precedes);
  C last = static_cast<C>(x[index[0]]);
  // Later elements enter the heap only if they are greater than its last element. Few are.
  constexpr int64_t kChunk = 64;
  int64_t step = 0;
  for (int64_t chunk = begin + k; chunk < end; chunk += kChunk) {
    if (++step % (kStepsPerLook / kChunk) == 0 && run.ShouldStop()) return;
    const int64_t chunk_end = std::min(end, chunk + kChunk);
    if (!AnyIsGreater(x + chunk, chunk_end - chunk, last)) continue;
    for (int64_t i = chunk; i < chunk_end; ++i) {
      if (!IsGreater(static_cast<C>(x[i]), last)) continue;
      std::pop_heap(index, index + k, precedes);
      index[k - 1] = static_cast<Index>(i);
      std::push_heap(index, index + k, precedes);
      last = static_cast<C>(x[index[0]]);
    }
  }
}

// Replaces indices of the heap index[k] with indices of `others` that precede them.
template <typename T, typename Index>
void MergeBlock(const RunContext& run, const T* x, absl::Span<const Index> others, int64_t k,
                Index* index) {
  const Precedes<T, Index> precedes = {x};
  int64_t step = 0;
  for (const Index i : others) {
    if (++step % kStepsPerLook == 0 && run.ShouldStop()) return;
    if (!precedes(i, index[0])) continue;
    std::pop_heap(index, index + k, precedes);
    index[k - 1] = i;
    std::push_heap(index, index + k, precedes);
  }
}

// Sorts the heap index[k].
template <typename T, typename Index>
void SortHeap(const RunContext& run, const T* x, int64_t k, Index* index) {
  for (int64_t left = k; left > 1; --left) {
    if (left % kStepsPerLook == 0 && run.ShouldStop()) return;
    std::pop_heap(index, index + left, Precedes<T, Index>{x});
  }
}

// Returns the number of blocks of a row. Blocks are selected in parallel. The number depends only
// on the shape.
int64_t NumRowBlocks(int64_t rows, int64_t n, int64_t k) {
  constexpr int64_t kMinBlock = int64_t{1} << 15;
  constexpr int64_t kMaxBlocks = 64;
  // Each block has a separate heap, whose candidates should be few compared to the block.
  constexpr int64_t kElementsPerCandidate = 4096;
  const int64_t block =
      std::max(kMinBlock, k < n / kElementsPerCandidate ? kElementsPerCandidate * k : n);
  return std::clamp<int64_t>(std::min(n / block, kMaxBlocks / rows), 1, kMaxBlocks);
}

template <typename T, typename Index>
absl::Status SelectRows(KernelContext& ctx, int64_t rows, int64_t n, int64_t k, Tensor* values,
                        Tensor* indices) {
  const T* const x = static_cast<const T*>(ctx.input(0).raw_data());
  T* const value = static_cast<T*>(values->raw_data());
  Index* const index = static_cast<Index*>(indices->raw_data());
  const int64_t blocks = NumRowBlocks(rows, n, k);
  const double sort_nanoseconds =
      10.0 * static_cast<double>(k) * (1 + std::log2(static_cast<double>(k)));
  const int64_t block_elements = n / blocks;
  const double block_nanoseconds = 0.5 * static_cast<double>(block_elements) + sort_nanoseconds;
  // The candidates of all blocks of a row except the first block.
  Tensor candidates;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(indices->dtype(), {rows, blocks - 1, k}, &candidates));
  Index* const candidate = static_cast<Index*>(candidates.raw_data());
  const auto candidates_of = [&](int64_t row, int64_t block) {
    return block == 0 ? index + row * k : candidate + (row * (blocks - 1) + block - 1) * k;
  };
  const auto finish = [&](int64_t row) {
    SortHeap(ctx.run(), x + row * n, k, index + row * k);
    for (int64_t i = row * k; i < (row + 1) * k; ++i) value[i] = x[row * n + index[i]];
  };
  ParallelFor(ctx, rows * blocks, BlockSizeForCost(block_nanoseconds),
              [&](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  const int64_t row = task / blocks;
                  const int64_t block = task % blocks;
                  SelectBlock(ctx.run(), x + row * n, block * n / blocks, (block + 1) * n / blocks,
                              k, candidates_of(row, block));
                  if (blocks == 1) finish(row);
                }
              });
  // If the run is stopped, candidates may not be valid indices.
  if (blocks == 1 || ctx.ShouldStop()) return absl::OkStatus();
  ParallelFor(ctx, rows, BlockSizeForCost(static_cast<double>(blocks) * sort_nanoseconds),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  MergeBlock(ctx.run(), x + row * n,
                             absl::MakeConstSpan(candidates_of(row, 1), (blocks - 1) * k), k,
                             index + row * k);
                  finish(row);
                }
              });
  return absl::OkStatus();
}

class TopKKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    if (types_.size() == 1) return construction.GetAttr("k", &k_);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    int64_t k = k_;
    if (types_.size() == 2) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "k"));
      GRADFLOW_ASSIGN_OR_RETURN(k, ctx.ScalarInt(1, "k"));
    }
    const TensorShape& input = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input, 1));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape partial, TopKShape(input, true, k));
    const int64_t columns = input.dim_size(input.dims() - 1);
    const DataType index_type = ctx.expected_output_dtype(1);
    const int64_t limit = index_type == DT_INT16   ? std::numeric_limits<int16_t>::max()
                          : index_type == DT_INT32 ? std::numeric_limits<int32_t>::max()
                                                   : std::numeric_limits<int64_t>::max();
    if (columns > limit) {
      return errors::InvalidArgument("the last dimension of input ", input.DebugString(),
                                     " must be at most ", limit, " for indices of ",
                                     DataTypeString(index_type));
    }
    TensorShape shape;
    partial.AsTensorShape(&shape);
    Tensor* values = nullptr;
    Tensor* indices = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &values));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, shape, &indices));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t rows = shape.num_elements() / k;
    absl::Status status;
    DispatchType(RealTypes(), types_[0], [&](auto tag) {
      using T = typename decltype(tag)::type;
      DispatchType(TypeList<int16_t, int32_t, int64_t>(), index_type, [&](auto index_tag) {
        using Index = typename decltype(index_tag)::type;
        status = SelectRows<T, Index>(ctx, rows, columns, k, values, indices);
      });
    });
    return status;
  }

 private:
  DataTypeVector types_;
  // The attribute k, unless k is an input.
  int64_t k_ = 0;
};

// ---- NthElement ----

// Checks n if it is known, and returns the shape of the output. REQUIRES: CheckRank
absl::StatusOr<PartialTensorShape> NthElementShape(const PartialTensorShape& input, bool is_known,
                                                   int64_t n) {
  if (is_known && n < 0) return errors::InvalidArgument("n must not be negative, but is ", n);
  if (input.unknown_rank()) return PartialTensorShape();
  const int64_t columns = input.dim_size(input.dims() - 1);
  if (is_known && columns >= 0 && n >= columns) {
    return errors::InvalidArgument("n must be less than ", columns,
                                   ", the last dimension of input ", input.DebugString(),
                                   ", but is ", n);
  }
  return WithoutLast(input, false, 0);
}

absl::Status NthElementShapeFn(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  std::vector<int64_t> n = {-1};
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &n));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, NthElementShape(c.input(0), known, n[0]));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Moves the n-th smallest element to x[n]. Partitions long rows itself, because std::nth_element
// cannot be stopped. If the run is stopped, the order of the elements is unspecified.
template <typename T>
void MoveNth(const RunContext& run, T* x, int64_t columns, int64_t n) {
  using C = ComputeType<T>;
  constexpr int64_t kShort = int64_t{1} << 20;
  // On average, a partition halves a row. In the unlikely case that the row stays long,
  // std::nth_element finishes it; its worst case is not quadratic.
  constexpr int kMaxPartitions = 64;
  const auto less = [](T a, T b) { return IsGreater(static_cast<C>(b), static_cast<C>(a)); };
  int64_t begin = 0;
  int64_t end = columns;
  for (int i = 0; i < kMaxPartitions && end - begin > kShort; ++i) {
    T pivots[] = {x[begin], x[begin + (end - begin) / 2], x[end - 1]};
    std::sort(std::begin(pivots), std::end(pivots), less);
    const T pivot = pivots[1];
    // The row has four parts: elements less than the pivot, elements equal to it, elements not yet
    // compared, and greater elements.
    int64_t equal = begin;
    int64_t greater = end;
    for (int64_t at = begin, step = 0; at < greater; ++step) {
      if (step % kStepsPerLook == 0 && run.ShouldStop()) return;
      if (less(x[at], pivot)) {
        std::swap(x[at++], x[equal++]);
      } else if (less(pivot, x[at])) {
        std::swap(x[at], x[--greater]);
      } else {
        ++at;
      }
    }
    if (n >= equal && n < greater) return;
    if (n < equal) {
      end = equal;
    } else {
      begin = greater;
    }
  }
  std::nth_element(x + begin, x + n, x + end, less);
}

// Sets *out to the n-th smallest element of a long row. A sample gives bounds for the element, and
// only the elements between the bounds are moved. Blocks depend only on the shape.
template <typename T>
absl::Status SelectNthOfLongRow(KernelContext& ctx, const T* x, int64_t columns, int64_t n,
                                T* out) {
  using C = ComputeType<T>;
  constexpr int64_t kSamples = 1024;
  // Four standard deviations of the position of the n-th element in a sample. All elements are
  // moved if the element is not between the bounds.
  constexpr int64_t kMargin = 64;
  constexpr int64_t kBlock = int64_t{1} << 15;
  const auto less = [](T a, T b) {
    const C x = static_cast<C>(a);
    const C y = static_cast<C>(b);
    // Has no branches, so that the compiler vectorizes the loop.
    return static_cast<int>(x < y) | (static_cast<int>(x != x) & static_cast<int>(y == y));
  };
  std::vector<T> sample(kSamples);
  for (int64_t i = 0; i < kSamples; ++i) sample[i] = x[columns / kSamples * i];
  std::sort(sample.begin(), sample.end(), less);
  const int64_t position = n / (columns / kSamples);
  using Limits = std::numeric_limits<C>;
  const T low = position >= kMargin     ? sample[position - kMargin]
                : Limits::has_quiet_NaN ? static_cast<T>(Limits::quiet_NaN())
                                        : static_cast<T>(Limits::lowest());
  const T high = position + kMargin < kSamples ? sample[position + kMargin]
                 : Limits::has_infinity        ? static_cast<T>(Limits::infinity())
                                               : static_cast<T>(Limits::max());

  const int64_t blocks = NumBlocks(columns, kBlock);
  struct Counts {
    int64_t below = 0;
    int64_t between = 0;
  };
  std::vector<Counts> counts(blocks);
  ParallelFor(ctx, columns, kBlock, [&](int64_t begin, int64_t end) {
    int below = 0;
    int above = 0;
    for (int64_t i = begin; i < end; ++i) {
      below += less(x[i], low);
      above += less(high, x[i]);
    }
    counts[begin / kBlock] = {below, end - begin - below - above};
  });
  if (ctx.ShouldStop()) return absl::OkStatus();
  Counts total;
  for (Counts& block : counts) {
    total.below += block.below;
    // From here on, `between` is the position where the block's elements begin.
    const int64_t between = block.between;
    block.between = total.between;
    total.between += between;
  }
  const bool found = n >= total.below && n < total.below + total.between;
  const int64_t size = found ? total.between : columns;
  Tensor scratch;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DataTypeToEnum<T>::value, {size}, &scratch));
  T* const elements = static_cast<T*>(scratch.raw_data());
  if (found) {
    n -= total.below;
    ParallelFor(ctx, columns, kBlock, [&](int64_t begin, int64_t end) {
      T* to = elements + counts[begin / kBlock].between;
      for (int64_t i = begin; i < end; ++i) {
        if ((less(x[i], low) | less(high, x[i])) == 0) *to++ = x[i];
      }
    });
  } else {
    std::copy_n(x, columns, elements);
  }
  MoveNth(ctx.run(), elements, size, n);
  *out = elements[n];
  return absl::OkStatus();
}

template <typename T>
absl::Status SelectNth(KernelContext& ctx, int64_t columns, int64_t n, Tensor* output) {
  // With this many long rows, every thread has some.
  constexpr int64_t kLongRow = int64_t{1} << 17;
  constexpr int64_t kManyRows = 16;
  if (columns >= kLongRow && output->NumElements() < kManyRows) {
    const T* const x = static_cast<const T*>(ctx.input(0).raw_data());
    T* const out = static_cast<T*>(output->raw_data());
    for (int64_t row = 0; row < output->NumElements() && !ctx.ShouldStop(); ++row) {
      GRADFLOW_RETURN_IF_ERROR(SelectNthOfLongRow(ctx, x + row * columns, columns, n, out + row));
    }
    return absl::OkStatus();
  }
  // Selection reorders the elements of a row, so it works on a copy.
  Tensor scratch;
  GRADFLOW_RETURN_IF_ERROR(
      ctx.AllocateTemp(output->dtype(), {output->NumElements(), columns}, &scratch));
  const T* const x = static_cast<const T*>(ctx.input(0).raw_data());
  T* const copy = static_cast<T*>(scratch.raw_data());
  T* const out = static_cast<T*>(output->raw_data());
  ParallelFor(ctx, output->NumElements(), BlockSizeForCost(10.0 * static_cast<double>(columns)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  T* const elements = copy + row * columns;
                  std::copy_n(x + row * columns, columns, elements);
                  MoveNth(ctx.run(), elements, columns, n);
                  out[row] = elements[n];
                }
              });
  return absl::OkStatus();
}

class NthElementKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return construction.GetAttr("reverse", &reverse_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "n"));
    GRADFLOW_ASSIGN_OR_RETURN(int64_t n, ctx.ScalarInt(1, "n"));
    const TensorShape& input = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input, 1));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape partial, NthElementShape(input, true, n));
    TensorShape shape;
    partial.AsTensorShape(&shape);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t columns = input.dim_size(input.dims() - 1);
    if (reverse_) n = columns - 1 - n;
    absl::Status status;
    DispatchType(RealTypes(), types_[0], [&](auto tag) {
      status = SelectNth<typename decltype(tag)::type>(ctx, columns, n, output);
    });
    return status;
  }

 private:
  DataTypeVector types_;
  bool reverse_ = false;
};

constexpr char kTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";

}  // namespace

void Register(Registry& registry) {
  registry.Op("TopK")
      .Group("nn_ops")
      .Input("input: T")
      .Output("values: T")
      .Output("indices: int32")
      .Attr("k: int >= 0")
      .Attr("sorted: bool = true")
      .Attr(kTypes)
      .Shape(TopKAttrShape)
      .Doc(R"(Finds the k greatest elements of each row of the last dimension.

If elements are equal, the element with the lower index comes first. NaN is smaller than any number.

input: A tensor of rank 1 at least, whose last dimension is `k` at least.
values: The greatest elements of each row; the last dimension is `k`.
indices: The indices of these elements in the row.
k: The number of elements of each row.
sorted: Has no effect. The elements are always in descending order.
T: The type of the elements.)");
  registry.Op("TopKV2")
      .Group("nn_ops")
      .Input("input: T")
      .Input("k: Tk")
      .Output("values: T")
      .Output("indices: index_type")
      .Attr("sorted: bool = true")
      .Attr(kTypes)
      .Attr("Tk: {int16, int32, int64} = DT_INT32")
      .Attr("index_type: {int16, int32, int64} = DT_INT32")
      .Shape(TopKInputShape)
      .Doc(R"(Finds the k greatest elements of each row of the last dimension.

If elements are equal, the element with the lower index comes first. NaN is smaller than any number.

input: A tensor of rank 1 at least, whose last dimension is `k` at least.
k: The number of elements of each row, a scalar.
values: The greatest elements of each row; the last dimension is `k`.
indices: The indices of these elements in the row.
sorted: Has no effect. The elements are always in descending order.
T: The type of the elements.
Tk: The type of `k`.
index_type: The type of the indices. The last dimension of `input` must not exceed it.)");
  registry.Op("NthElement")
      .Group("nn_ops")
      .Input("input: T")
      .Input("n: int32")
      .Output("values: T")
      .Attr("reverse: bool = false")
      .Attr(kTypes)
      .Shape(NthElementShapeFn)
      .Doc(R"(Finds the n-th smallest element of each row of the last dimension.

NaN is smaller than any number.

input: A tensor of rank 1 at least, whose last dimension is greater than `n`.
n: The position in ascending order, from 0; a scalar.
values: The elements, in the shape of `input` without its last dimension.
reverse: If true, `n` is the position in descending order.
T: The type of the elements.)");
  const DataTypeVector types = DataTypesOf(RealTypes());
  registry.Kernel("TopK", MakeKernel<TopKKernel>).Types("T", types);
  registry.Kernel("TopKV2", MakeKernel<TopKKernel>).Types("T", types);
  registry.Kernel("NthElement", MakeKernel<NthElementKernel>).Types("T", types);
}

}  // namespace gradflow::top_k
