// Histograms: Bincount, DenseBincount, RaggedBincount, SparseBincount and HistogramFixedWidth.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/math/segment_rows.h"

namespace gradflow::bincount {
namespace {

// The number of values of a block. If a row has several blocks, each has separate bins, unless
// there are more bins than values.
constexpr int64_t kBlock = 1 << 16;
constexpr int64_t kMaxBlocks = 64;

// The values to count. Value i is counted in the bins of row[i], or of the row that `splits`
// assigns.
struct Values {
  absl::Span<const int64_t> values;
  int64_t num_rows = 1;
  // Row r has the values from splits[r] to splits[r + 1]. Empty if `row` is not empty, or if all
  // rows have the same length.
  absl::Span<const int64_t> splits;
  // The row of each value, in any order. May be empty.
  absl::Span<const int64_t> row;
};

absl::Status CheckNotNegative(absl::string_view name, absl::Span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) {
      return errors::InvalidArgument(name, " must not be negative, but element ", i, " is ",
                                     values[i]);
    }
  }
  return absl::OkStatus();
}

// Sets bins[num_rows, size]. Values outside of [0, size) are ignored. Sums of weights are computed
// in Sum. Blocks depend only on the number of values and are added in order. Without weights, each
// value counts as 1.
template <typename T>
absl::Status Count(KernelContext& ctx, const Values& in, const T* weights, bool binary,
                   int64_t size, T* bins) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, WrappingType<T>>;
  const auto count = [&](auto* to, int64_t value, int64_t i) {
    using To = std::remove_pointer_t<decltype(to)>;
    if (value < 0 || value >= size) return;
    if (binary) {
      to[value] = static_cast<To>(1);
    } else {
      to[value] = static_cast<To>(static_cast<Sum>(to[value]) +
                                  (weights == nullptr ? Sum(1) : static_cast<Sum>(weights[i])));
    }
  };
  const int64_t n = static_cast<int64_t>(in.values.size());
  if (in.num_rows == 1 && n > kBlock && size <= n / 2) {
    const int64_t blocks =
        std::min(NumBlocks(n, kBlock), std::clamp<int64_t>(n / size, 1, kMaxBlocks));
    const int64_t block_values = NumBlocks(n, blocks);
    Tensor temp;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_UINT8, {blocks, size * static_cast<int64_t>(sizeof(Sum))}, &temp));
    Sum* partials = static_cast<Sum*>(temp.raw_data());
    ParallelFor(ctx, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        Sum* to = partials + block * size;
        std::fill_n(to, size, Sum(0));
        const int64_t stop = std::min(n, (block + 1) * block_values);
        for (int64_t i = block * block_values; i < stop; ++i) count(to, in.values[i], i);
      }
    });
    ParallelFor(ctx, size, BlockSizeForCost(1.0 * blocks), [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) {
        Sum sum = 0;
        for (int64_t block = 0; block < blocks; ++block) sum += partials[block * size + v];
        bins[v] = static_cast<T>(binary ? Sum(sum != 0) : sum);
      }
    });
    return absl::OkStatus();
  }
  ParallelFor(ctx, in.num_rows * size, BlockSizeForCost(0.3),
              [&](int64_t begin, int64_t end) { std::fill(bins + begin, bins + end, T(0)); });
  if (!in.row.empty()) {
    for (int64_t i = 0; i < n; ++i) count(bins + in.row[i] * size, in.values[i], i);
    return absl::OkStatus();
  }
  const int64_t length = n / std::max<int64_t>(in.num_rows, 1);
  ParallelFor(ctx, in.num_rows, BlockSizeForCost(2.0 * length + 5),
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const int64_t from = in.splits.empty() ? r * length : in.splits[r];
                  const int64_t to = in.splits.empty() ? from + length : in.splits[r + 1];
                  for (int64_t i = from; i < to; ++i) count(bins + r * size, in.values[i], i);
                }
              });
  return absl::OkStatus();
}

// The inputs of an op and their conditions.
struct BincountInputs {
  // The indices of the inputs: the values, the number of bins, the weights.
  int values;
  int size;
  int weights;
  absl::string_view values_name;
  // True if the weights must have the shape of the values.
  bool same_shape;
};
constexpr BincountInputs kPlain = {0, 1, 2, "arr", false};
constexpr BincountInputs kDense = {0, 1, 2, "input", true};
constexpr BincountInputs kRagged = {1, 2, 3, "values", false};
constexpr BincountInputs kSparse = {1, 3, 4, "values", false};

absl::Status CheckSize(int64_t size) {
  if (size >= 0) return absl::OkStatus();
  return errors::InvalidArgument("size is ", size, ", expected at least 0");
}

// Checks the shape of the weights. They have the shape of the values, or any shape with the same
// number of elements unless the op is DenseBincount. Empty weights count each value as 1.
absl::Status CheckWeights(const BincountInputs& form, const PartialTensorShape& weights,
                          const PartialTensorShape& values) {
  if (weights.IsCompatibleWith(values)) return absl::OkStatus();
  for (int d = 0; d < weights.dims(); ++d) {
    if (weights.dim_size(d) <= 0) return absl::OkStatus();
  }
  if (weights.unknown_rank()) return absl::OkStatus();
  if (!form.same_shape &&
      (!values.IsFullyDefined() || values.num_elements() == weights.num_elements())) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("weights must be empty or have the ",
                                 form.same_shape ? "shape" : "size", " of ", form.values_name, ", ",
                                 values.DebugString(), ", but have shape ", weights.DebugString());
}

// Sets the shape of the output to `rows` rows of bins, or to a vector of bins if rows is kVector.
constexpr int64_t kVector = -2;
absl::Status CountShape(ShapeContext& c, const BincountInputs& form, int64_t rows,
                        bool rank_known = true) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(form.size, 0));
  GRADFLOW_RETURN_IF_ERROR(CheckWeights(form, c.input(form.weights), c.input(form.values)));
  std::vector<int64_t> size;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(form.size, &size));
  if (known) GRADFLOW_RETURN_IF_ERROR(CheckSize(size[0]));
  if (!rank_known) return absl::OkStatus();
  DimVector dims;
  if (rows != kVector) dims.push_back(rows);
  dims.push_back(known ? size[0] : -1);
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status PlainShape(ShapeContext& c) { return CountShape(c, kPlain, kVector); }

absl::Status DenseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost(c, 0, 2));
  const int rank = c.input(0).dims();
  return CountShape(c, kDense, rank == 2 ? c.Dim(0, 0) : kVector, rank >= 0);
}

absl::Status RaggedShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  const int64_t splits = c.Dim(0, 0);
  if (splits == 0) return errors::InvalidArgument("splits must not be empty");
  return CountShape(c, kRagged, splits < 0 ? -1 : splits - 1);
}

absl::Status SparseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  const int64_t rank = c.Dim(2, 0);
  if (rank == 0) return errors::InvalidArgument("dense_shape must not be empty");
  if (rank == 1) return CountShape(c, kSparse, kVector);
  std::vector<int64_t> shape;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &shape));
  if (known && shape[0] < 0) {
    return errors::InvalidArgument("dense_shape[0] is ", shape[0], ", expected at least 0");
  }
  return CountShape(c, kSparse, known ? shape[0] : -1, rank > 0);
}

// Reads size and weights, allocates the output [rows, size], or [size] if `is_vector`, and counts.
absl::Status CountInto(KernelContext& ctx, const BincountInputs& form, bool binary, bool is_vector,
                       Values values) {
  GRADFLOW_RETURN_IF_ERROR(
      CheckWeights(form, ctx.input(form.weights).shape(), ctx.input(form.values).shape()));
  // Rows of a sparse tensor ignore negative values, as in TensorFlow.
  if (values.row.empty()) {
    GRADFLOW_RETURN_IF_ERROR(CheckNotNegative(form.values_name, values.values));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t size, ctx.ScalarInt(form.size, "size"));
  GRADFLOW_RETURN_IF_ERROR(CheckSize(size));
  DimVector dims;
  if (!is_vector) dims.push_back(values.num_rows);
  dims.push_back(size);
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  const Tensor& weights = ctx.input(form.weights);
  if (weights.dtype() != ctx.expected_output_dtype(0)) {
    return errors::InvalidArgument("weights must be of type ",
                                   DataTypeString(ctx.expected_output_dtype(0)), ", but are ",
                                   DataTypeString(weights.dtype()));
  }
  Tensor* bins = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &bins));
  if (shape.num_elements() == 0) return absl::OkStatus();
  absl::Status status;
  using Types = TypeList<int32_t, int64_t, float, double>;
  DispatchType(Types(), bins->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* weight =
        weights.NumElements() == 0 ? nullptr : static_cast<const T*>(weights.raw_data());
    status = Count<T>(ctx, values, weight, binary, size, static_cast<T*>(bins->raw_data()));
  });
  return status;
}

absl::Status Bincount(KernelContext& ctx) {
  Tensor storage;
  Values values;
  GRADFLOW_ASSIGN_OR_RETURN(values.values, Int64Elements(ctx, 0, "arr", &storage));
  return CountInto(ctx, kPlain, false, /*is_vector=*/true, values);
}

class CountKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("binary_output", &binary_);
  }

 protected:
  bool binary_ = false;
};

class DenseKernel final : public CountKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost("input", input.shape(), 2));
    Tensor storage;
    Values values;
    GRADFLOW_ASSIGN_OR_RETURN(values.values, Int64Elements(ctx, 0, "input", &storage));
    if (input.dims() == 2) values.num_rows = input.dim_size(0);
    return CountInto(ctx, kDense, binary_, input.dims() < 2, values);
  }
};

class RaggedKernel final : public CountKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "splits"));
    Tensor storage[2];
    Values values;
    GRADFLOW_ASSIGN_OR_RETURN(values.splits, Int64Elements(ctx, 0, "splits", &storage[0]));
    GRADFLOW_ASSIGN_OR_RETURN(values.values, Int64Elements(ctx, 1, "values", &storage[1]));
    if (values.splits.empty()) return errors::InvalidArgument("splits must not be empty");
    const int64_t n = static_cast<int64_t>(values.values.size());
    for (size_t i = 1; i < values.splits.size(); ++i) {
      if (values.splits[i] < values.splits[i - 1]) {
        return errors::InvalidArgument("splits must be sorted, but splits[", i, "] is ",
                                       values.splits[i], " after ", values.splits[i - 1]);
      }
    }
    if (values.splits.front() != 0 || values.splits.back() != n) {
      return errors::InvalidArgument("splits must start with 0 and end with ", n,
                                     ", the number of values, but start with ",
                                     values.splits.front(), " and end with ", values.splits.back());
    }
    values.num_rows = static_cast<int64_t>(values.splits.size()) - 1;
    return CountInto(ctx, kRagged, binary_, /*is_vector=*/false, values);
  }
};

class SparseBincountKernel final : public CountKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "indices", 2));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "values"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "dense_shape"));
    Tensor storage[3];
    Values values;
    GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> indices,
                              Int64Elements(ctx, 0, "indices", &storage[0]));
    GRADFLOW_ASSIGN_OR_RETURN(values.values, Int64Elements(ctx, 1, "values", &storage[1]));
    GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> shape,
                              Int64Elements(ctx, 2, "dense_shape", &storage[2]));
    const int64_t n = static_cast<int64_t>(values.values.size());
    const int64_t rank = static_cast<int64_t>(shape.size());
    if (rank == 0) return errors::InvalidArgument("dense_shape must not be empty");
    if (shape[0] < 0) {
      return errors::InvalidArgument("dense_shape[0] is ", shape[0], ", expected at least 0");
    }
    if (ctx.input(0).dim_size(0) != n || ctx.input(0).dim_size(1) != rank) {
      return errors::InvalidArgument("indices must have shape [", n, ",", rank,
                                     "], by the numbers of values and of dimensions, but have ",
                                     "shape ", ctx.input(0).shape().DebugString());
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t index = indices[i * rank + d];
        if (index < 0 || index >= shape[d]) {
          return errors::InvalidArgument("indices[", i, ",", d, "] is ", index,
                                         ", expected in [0, ", shape[d], ")");
        }
      }
    }
    if (rank > 1) {
      values.num_rows = shape[0];
      Tensor rows;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {n}, &rows));
      for (int64_t i = 0; i < n; ++i) rows.flat<int64_t>()(i) = indices[i * rank];
      values.row = rows.span<int64_t>();
      return CountInto(ctx, kSparse, binary_, /*is_vector=*/false, values);
    }
    return CountInto(ctx, kSparse, binary_, /*is_vector=*/true, values);
  }
};

// ---- HistogramFixedWidth ----

absl::Status CheckBins(int64_t bins) {
  if (bins > 0) return absl::OkStatus();
  return errors::InvalidArgument("nbins is ", bins, ", expected at least 1");
}

absl::Status HistogramShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  if (const int64_t n = c.Dim(1, 0); n >= 0 && n != 2) {
    return errors::InvalidArgument("value_range must have shape [2], but has shape ",
                                   c.input(1).DebugString());
  }
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  std::vector<int64_t> bins;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &bins));
  if (known) GRADFLOW_RETURN_IF_ERROR(CheckBins(bins[0]));
  c.set_output(0, {known ? bins[0] : -1});
  return absl::OkStatus();
}

template <typename T>
absl::Status Histogram(KernelContext& ctx, int64_t bins, const Tensor& in, int64_t* counts) {
  const T* range = static_cast<const T*>(ctx.input(1).raw_data());
  if (!(range[0] < range[1])) {
    return errors::InvalidArgument("value_range[0] must be less than value_range[1], but they are ",
                                   range[0], " and ", range[1]);
  }
  const double low = static_cast<double>(range[0]);
  const double width = (static_cast<double>(range[1]) - low) / static_cast<double>(bins);
  const T* values = static_cast<const T*>(in.raw_data());
  const int64_t n = in.NumElements();
  std::atomic<bool> has_nan{false};
  // Each block has separate counts.
  const int64_t blocks = std::clamp<int64_t>(n / (bins + kBlock), 1, kMaxBlocks);
  const int64_t block_values = std::max<int64_t>(1, NumBlocks(n, blocks));
  Tensor temp;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {blocks, bins}, &temp));
  int64_t* partials = static_cast<int64_t*>(temp.raw_data());
  ParallelFor(ctx, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      int64_t* to = partials + block * bins;
      std::fill_n(to, bins, 0);
      const int64_t stop = std::min(n, (block + 1) * block_values);
      for (int64_t i = block * block_values; i < stop; ++i) {
        if (values[i] != values[i]) has_nan = true;
        const double position = (static_cast<double>(values[i]) - low) / width;
        // NaN is counted in the first bin. It occurs if a value and the range are infinite.
        ++to[position >= static_cast<double>(bins) ? bins - 1
             : position > 0                        ? static_cast<int64_t>(position)
                                                   : 0];
      }
    }
  });
  if (has_nan) return errors::InvalidArgument("values must not contain NaN");
  ParallelFor(ctx, bins, BlockSizeForCost(1.0 * blocks), [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      counts[v] = 0;
      for (int64_t block = 0; block < blocks; ++block) counts[v] += partials[block * bins + v];
    }
  });
  return absl::OkStatus();
}

absl::Status HistogramFixedWidth(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(1, "value_range", {2}));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t bins, ctx.ScalarInt(2, "nbins"));
  GRADFLOW_RETURN_IF_ERROR(CheckBins(bins));
  if (ctx.input_dtype(0) != ctx.input_dtype(1)) {
    return errors::InvalidArgument("values and value_range must be of one type, but are ",
                                   DataTypeString(ctx.input_dtype(0)), " and ",
                                   DataTypeString(ctx.input_dtype(1)));
  }
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {bins}, &out));
  Tensor wide;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {bins}, &wide));
  int64_t* counts = static_cast<int64_t*>(wide.raw_data());
  absl::Status status =
      errors::InvalidArgument("values must not be of type ", DataTypeString(ctx.input_dtype(0)));
  using Types = TypeList<int32_t, int64_t, float, double>;
  DispatchType(Types(), ctx.input_dtype(0), [&](auto tag) {
    status = Histogram<typename decltype(tag)::type>(ctx, bins, ctx.input(0), counts);
  });
  GRADFLOW_RETURN_IF_ERROR(status);
  DispatchType(IndexTypes(), out->dtype(), [&](auto tag) {
    using Index = typename decltype(tag)::type;
    Index* to = static_cast<Index*>(out->raw_data());
    for (int64_t v = 0; v < bins; ++v) to[v] = static_cast<Index>(counts[v]);
  });
  return absl::OkStatus();
}

constexpr char kSums[] =
    "Values that are not less than `size` are ignored. Weights are summed in an order that depends "
    "on the shapes alone;\nintegers wrap around.";
constexpr char kSizeAndWeights[] = R"(size: A scalar: the number of bins.
weights: The weights of the values, one for each value. If empty, each value has the weight 1.
)";
constexpr char kTypes[] = R"(
Tidx: The type of the values.
T: The type of the weights and the sums.
binary_output: If true, a bin is 1 if its value occurs, otherwise 0, and the weights are ignored.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("Bincount")
      .Group("math_ops")
      .Input("arr: int32")
      .Input("size: int32")
      .Input("weights: T")
      .Output("bins: T")
      .Attr("T: {int32, int64, float, double}")
      .Shape(PlainShape)
      .Doc(absl::StrCat("Counts the values of a tensor of integers, or sums their weights.\n\n",
                        kSums, "\n\narr: Integers, not negative, of any shape.\n", kSizeAndWeights,
                        R"(bins: The sum of the weights of each value below `size`.
T: The type of the weights and the sums.)"));
  registry.Op("DenseBincount")
      .Group("math_ops")
      .Input("input: Tidx")
      .Input("size: Tidx")
      .Input("weights: T")
      .Output("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr("T: {int32, int64, float, double}")
      .Attr("binary_output: bool = false")
      .Shape(DenseShape)
      .Doc(absl::StrCat(
          "Counts the values of a vector, or of each row of a matrix, or sums their weights.\n\n",
          kSums, "\n\ninput: Integers, not negative, of rank 2 at most.\n", kSizeAndWeights,
          "output: The sum of the weights of each value below `size`, for each row of a matrix.",
          kTypes));
  registry.Op("RaggedBincount")
      .Group("math_ops")
      .Input("splits: int64")
      .Input("values: Tidx")
      .Input("size: Tidx")
      .Input("weights: T")
      .Output("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr("T: {int32, int64, float, double}")
      .Attr("binary_output: bool = false")
      .Shape(RaggedShape)
      .Doc(absl::StrCat(
          "Counts the values of each row of a ragged tensor, or sums their weights.\n\n", kSums, R"(

splits: A vector: row i has the values from splits[i] up to splits[i + 1].
values: Integers, not negative.
)",
          kSizeAndWeights,
          "output: The sum of the weights of each value below `size`, for each row.", kTypes));
  registry.Op("SparseBincount")
      .Group("math_ops")
      .Input("indices: int64")
      .Input("values: Tidx")
      .Input("dense_shape: int64")
      .Input("size: Tidx")
      .Input("weights: T")
      .Output("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr("T: {int32, int64, float, double}")
      .Attr("binary_output: bool = false")
      .Shape(SparseShape)
      .Doc(absl::StrCat(
          "Counts the values of a sparse tensor, or of each of its rows, or sums their "
          "weights.\n\n",
          kSums, R"(

indices: The indices of the values, [number of values, rank].
values: Integers. A negative value is an error if the rank is 1, and is otherwise ignored.
dense_shape: The shape of the sparse tensor.
)",
          kSizeAndWeights,
          "output: The sum of the weights of each value below `size`, for each row unless the rank "
          "is 1.",
          kTypes));
  registry.Op("HistogramFixedWidth")
      .Group("math_ops")
      .Input("values: T")
      .Input("value_range: T")
      .Input("nbins: int32")
      .Output("out: dtype")
      .Attr("T: {int32, int64, float, double}")
      .Attr("dtype: {int32, int64} = DT_INT32")
      .Shape(HistogramShape)
      .Doc(R"(Counts values in bins of equal width.

Values below the range count in the first bin, values above the range in the last bin.

values: Numbers, not NaN, of any shape.
value_range: The lower and the upper end of the range, [2].
nbins: A scalar: the number of bins.
out: The number of values in each bin.
T: The type of the values.
dtype: The type of the counts.)");
  registry.Kernel("Bincount", MakeFunctionKernel<Bincount>);
  registry.Kernel("DenseBincount", MakeKernel<DenseKernel>);
  registry.Kernel("RaggedBincount", MakeKernel<RaggedKernel>);
  registry.Kernel("SparseBincount", MakeKernel<SparseBincountKernel>);
  registry.Kernel("HistogramFixedWidth", MakeFunctionKernel<HistogramFixedWidth>);
}

}  // namespace gradflow::bincount
