// DenseCountSparseOutput, SparseCountSparseOutput and RaggedCountSparseOutput: the number of times
// that each value occurs in each row.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/ragged/ragged_splits.h"
#include "gradflow/ops/sparse/sparse_inputs.h"

namespace gradflow::sparse_count {
namespace {

enum class Form { kDense, kSparse, kRagged };

template <Form F>
constexpr int kValuesInput = F == Form::kDense ? 0 : 1;

absl::Status SetCountShapes(ShapeContext& c, int64_t rank) {
  c.set_output(0, PartialTensorShape({-1, rank}));
  c.set_output(1, PartialTensorShape({-1}));
  c.set_output(2, PartialTensorShape({rank}));
  return absl::OkStatus();
}

template <Form F>
absl::Status CountShape(ShapeContext& c) {
  if constexpr (F == Form::kSparse) {
    GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
    const int64_t rank = std::max(c.Dim(0, 1), c.Dim(2, 0));
    return SetCountShapes(c, rank < 0 ? -1 : std::min<int64_t>(rank, 2));
  } else if constexpr (F == Form::kRagged) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
    return SetCountShapes(c, 2);
  } else {
    const PartialTensorShape& values = c.input(0);
    if (!values.unknown_rank() && (values.dims() < 1 || values.dims() > 2)) {
      return errors::InvalidArgument("values must be a vector or a matrix, but has shape ",
                                     values.DebugString());
    }
    return SetCountShapes(c, values.unknown_rank() ? -1 : values.dims());
  }
}

// A value that is counted, where it occurs.
struct Occurrence {
  int64_t row;
  int64_t value;
  // The position in `values`.
  int64_t position;
};

// The rows of the values.
struct Rows {
  int64_t count = 1;
  // True if the result is a vector instead of a matrix.
  bool is_vector = false;
};

template <Form F>
class CountKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("minlength", &min_length_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("maxlength", &max_length_));
    return construction.GetAttr("binary_output", &is_binary_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    Rows rows;
    GRADFLOW_RETURN_IF_ERROR(ReadRows(ctx, &rows));
    const Tensor& values = ctx.input(kValuesInput<F>);
    const Tensor& weights = ctx.input(ctx.num_inputs() - 1);
    const bool is_weighted = !is_binary_ && weights.NumElements() > 0;
    if (weights.NumElements() > 0) {
      GRADFLOW_RETURN_IF_ERROR(
          ctx.CheckSameShape(ctx.num_inputs() - 1, "weights", kValuesInput<F>, "values"));
    }
    if (weights.dtype() != ctx.expected_output_dtype(1)) {
      return errors::InvalidArgument("weights must be of type ",
                                     DataTypeString(ctx.expected_output_dtype(1)));
    }
    Tensor buffer;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {values.NumElements(), 3}, &buffer));
    static_assert(sizeof(Occurrence) == 3 * sizeof(int64_t));
    auto* const all = reinterpret_cast<Occurrence*>(buffer.raw_data());
    int64_t largest = 0;
    int64_t size = 0;
    const IndexReader reader(values);
    for (int64_t i = 0; i < values.NumElements(); ++i) {
      const int64_t value = reader[i];
      if (value < 0) {
        return errors::InvalidArgument(ElementName("values", values.shape(), i), " is ", value,
                                       ", expected at least 0");
      }
      if (max_length_ >= 0 && value >= max_length_) continue;
      largest = std::max(largest, value);
      all[size++] = {RowOf(ctx, rows, i), value, i};
    }
    if (max_length_ < 0 && largest == std::numeric_limits<int64_t>::max()) {
      return errors::InvalidArgument("values has ", largest, ", which is too large to be counted");
    }
    const auto same = [](const Occurrence& a, const Occurrence& b) {
      return a.row == b.row && a.value == b.value;
    };
    // Occurrences of a value keep their order, in which their weights are added.
    std::sort(all, all + size, [](const Occurrence& a, const Occurrence& b) {
      if (a.row != b.row) return a.row < b.row;
      return a.value != b.value ? a.value < b.value : a.position < b.position;
    });
    if (ctx.ShouldStop()) return StoppedError();
    int64_t groups = 0;
    for (int64_t i = 0; i < size; ++i) groups += i == 0 || !same(all[i], all[i - 1]) ? 1 : 0;
    Tensor* indices = nullptr;
    Tensor* counts = nullptr;
    const int rank = rows.is_vector ? 1 : 2;
    GRADFLOW_RETURN_IF_ERROR(AllocateSparse(ctx, 0, 1, groups, rank, 0, &indices, &counts));
    const int64_t length = max_length_ >= 0 ? max_length_ : std::max(largest + 1, min_length_);
    const int64_t dims[] = {rows.count, length};
    GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 2, absl::MakeConstSpan(dims).last(rank)));
    const auto index = indices->span<int64_t>();
    DispatchType(TypeList<int32_t, int64_t, float, double>(), counts->dtype(), [&](auto tag) {
      using W = typename decltype(tag)::type;
      // Sums of integers wrap around.
      using Sum = typename std::conditional_t<std::is_integral_v<W>, std::make_unsigned<W>,
                                              std::common_type<W>>::type;
      int64_t next = -1;
      Sum sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        if (i == 0 || !same(all[i], all[i - 1])) {
          sum = 0;
          ++next;
          if (!rows.is_vector) index[2 * next] = all[i].row;
          index[(next + 1) * rank - 1] = all[i].value;
        }
        if (is_binary_) {
          sum = 1;
        } else {
          sum += is_weighted ? static_cast<Sum>(weights.span<W>()[all[i].position]) : Sum(1);
        }
        counts->span<W>()[next] = static_cast<W>(sum);
      }
    });
    return absl::OkStatus();
  }

 private:
  // Checks the inputs that say where the values are.
  absl::Status ReadRows(KernelContext& ctx, Rows* rows) const {
    if constexpr (F == Form::kSparse) {
      GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                                ReadSparse(ctx, "", SparseOrder::kAny, 0, 1, 2));
      if (in.rank == 0) return errors::InvalidArgument("dense_shape must not be empty");
      rows->is_vector = in.rank == 1;
      if (!rows->is_vector) rows->count = in.shape.dim_size(0);
      if (rows->count == 0) return errors::InvalidArgument("dense_shape[0] must not be 0");
    } else if constexpr (F == Form::kRagged) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "values"));
      GRADFLOW_RETURN_IF_ERROR(CheckRowSplits("splits", ctx.input(0), ctx.input(1).NumElements()));
      rows->count = ctx.input(0).NumElements() - 1;
      if (rows->count == 0) return errors::InvalidArgument("splits must describe at least one row");
    } else {
      const Tensor& values = ctx.input(0);
      if (values.dims() < 1 || values.dims() > 2) {
        return errors::InvalidArgument("values must be a vector or a matrix, but has shape ",
                                       values.shape().DebugString());
      }
      rows->is_vector = values.dims() == 1;
      if (!rows->is_vector) rows->count = values.dim_size(0);
      if (rows->count == 0) {
        return errors::InvalidArgument("values must have at least one row, but has shape ",
                                       values.shape().DebugString());
      }
    }
    return absl::OkStatus();
  }

  // Returns the row of value i.
  static int64_t RowOf(const KernelContext& ctx, const Rows& rows, int64_t i) {
    if (rows.is_vector) return 0;
    if constexpr (F == Form::kSparse) {
      return ctx.input(0).span<int64_t>()[i * ctx.input(0).dim_size(1)];
    } else if constexpr (F == Form::kRagged) {
      const auto splits = ctx.input(0).span<int64_t>();
      return std::upper_bound(splits.begin(), splits.end(), i) - splits.begin() - 1;
    } else {
      return i / ctx.input(0).dim_size(1);
    }
  }

  int64_t min_length_ = -1;
  int64_t max_length_ = -1;
  bool is_binary_ = false;
};

template <Form F>
void RegisterCount(Registry& registry, const char* name, const char* of, const char* inputs_doc) {
  {
    Registry::OpRegistrar op = registry.Op(name);
    op.Group("math_ops");
    if constexpr (F == Form::kSparse) op.Input("indices: int64");
    if constexpr (F == Form::kRagged) op.Input("splits: int64");
    op.Input("values: T");
    if constexpr (F == Form::kSparse) op.Input("dense_shape: int64");
    op.Input("weights: output_type")
        .Output("output_indices: int64")
        .Output("output_values: output_type")
        .Output("output_dense_shape: int64")
        .Attr("T: {int32, int64}")
        .Attr("minlength: int >= -1 = -1")
        .Attr("maxlength: int >= -1 = -1")
        .Attr("binary_output: bool")
        .Attr("output_type: {int32, int64, float, double}")
        .Shape(CountShape<F>)
        .Doc(absl::StrCat("Counts how often each integer occurs in each row of a ", of,
                          " tensor.\n\n", inputs_doc,
                          R"(weights: The weight of each value, or an empty tensor for weights of 1.
output_indices: The row, if there are rows, and the integer of each count, in row-major order.
output_values: The counts, or the sums of weights.
output_dense_shape: The shape of the result.
T: The type of the values.
minlength: The least size of the last dimension of the result.
maxlength: If it is not -1, the size of the last dimension. Larger values are not counted.
binary_output: If true, all counts are 1.
output_type: The type of the counts.)"));
  }
  registry.Kernel(name, MakeKernel<CountKernel<F>>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterCount<Form::kDense>(registry, "DenseCountSparseOutput", "dense",
                              "values: A vector or a matrix of integers of at least 0.\n");
  RegisterCount<Form::kSparse>(
      registry, "SparseCountSparseOutput", "sparse",
      "indices: The index of each value, a row of a matrix. Its first number is the row.\n"
      "values: The values, integers of at least 0.\n"
      "dense_shape: The shape.\n");
  RegisterCount<Form::kRagged>(registry, "RaggedCountSparseOutput", "ragged",
                               "splits: The row splits.\n"
                               "values: The values, integers of at least 0.\n");
}

}  // namespace gradflow::sparse_count
