// RaggedTensorToVariant, RaggedTensorFromVariant and RaggedTensorToVariantGradient.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/ragged_value.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/ragged/ragged_splits.h"

namespace gradflow::ragged_variant {
namespace {

// ---- RaggedTensorToVariant ----

absl::Status ToVariantShape(ShapeContext& c) {
  bool batched = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("batched_input", &batched));
  const int levels = c.num_inputs() - 1;
  for (int i = 0; i < levels; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  if (!batched) return ScalarShape(c);
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(levels, 1));
  const PartialTensorShape& first = c.input(0);
  const int64_t size = first.unknown_rank() ? -1 : first.dim_size(0);
  c.set_output(0, PartialTensorShape({size < 0 || levels == 0 ? size : size - 1}));
  return absl::OkStatus();
}

class ToVariantKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("batched_input", &batched_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const int levels = ctx.num_inputs() - 1;
    if (levels > 0 || batched_) {
      GRADFLOW_RETURN_IF_ERROR(CheckNestedSplits(ctx, "rt_nested_splits", 0, levels));
    }
    if (!batched_) {
      std::vector<Tensor> components;
      for (int i = 0; i <= levels; ++i) components.push_back(ctx.input(i));
      ctx.set_output(0, Tensor(Variant(RaggedValue(std::move(components)))));
      return absl::OkStatus();
    }
    const Tensor& first = ctx.input(0);
    const int64_t rows = levels == 0 ? first.dim_size(0) : first.NumElements() - 1;
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows}, &output));
    const auto variants = output->span<Variant>();
    for (int64_t row = 0; row < rows; ++row) {
      if ((row & 0xff) == 0xff && ctx.ShouldStop()) return StoppedError();
      GRADFLOW_ASSIGN_OR_RETURN(std::vector<Tensor> components, Row(ctx, levels, row));
      variants[row] = RaggedValue(std::move(components));
    }
    return absl::OkStatus();
  }

 private:
  // Returns the splits and values of one row.
  static absl::StatusOr<std::vector<Tensor>> Row(KernelContext& ctx, int levels, int64_t row) {
    const Tensor& values = ctx.input(levels);
    std::vector<Tensor> components;
    components.reserve(std::max(levels, 1));
    if (levels == 0) {
      components.push_back(values.SubSlice(row));
      return components;
    }
    int64_t begin = IndexReader(ctx.input(0))[row];
    int64_t end = IndexReader(ctx.input(0))[row + 1];
    for (int level = 1; level < levels; ++level) {
      const IndexReader splits(ctx.input(level));
      Tensor own;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(ctx.input(level).dtype(), {end - begin + 1}, &own));
      for (int64_t i = begin; i <= end; ++i) WriteIndex(&own, i - begin, splits[i] - splits[begin]);
      components.push_back(std::move(own));
      begin = splits[begin];
      end = splits[end];
    }
    components.push_back(values.Slice(begin, end));
    return components;
  }

  bool batched_ = false;
};

// ---- RaggedTensorFromVariant ----

absl::Status FromVariantShape(ShapeContext& c) {
  int input_rank = 0;
  int output_rank = 0;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("input_ragged_rank", &input_rank));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("output_ragged_rank", &output_rank));
  const PartialTensorShape& encoded = c.input(0);
  if (!encoded.unknown_rank()) {
    const int inferred = output_rank - encoded.dims();
    if (inferred < 0 || (input_rank >= 0 && input_rank != inferred)) {
      return errors::InvalidArgument(
          "output_ragged_rank must be the sum of the rank of ", "encoded_ragged, ", encoded.dims(),
          ", and input_ragged_rank, ", input_rank, ", but is ", output_rank);
    }
  }
  for (int i = 0; i < output_rank; ++i) c.set_output(i, PartialTensorShape({-1}));
  return absl::OkStatus();
}

absl::Status TooManyRows() {
  return errors::InvalidArgument("the result has more rows than int64 holds");
}

class FromVariantKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("input_ragged_rank", &input_rank_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("Tvalues", &values_type_));
    return construction.GetAttr("Tsplits", &splits_type_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& encoded = ctx.input(0);
    const int outputs = ctx.num_outputs() - 1;
    const int dims = encoded.dims();
    const int rank = outputs - dims;
    if (rank < 0 || (input_rank_ >= 0 && input_rank_ != rank)) {
      return errors::InvalidArgument("output_ragged_rank must be the sum of the rank of ",
                                     "encoded_ragged, ", dims, ", and input_ragged_rank, ",
                                     input_rank_, ", but is ", outputs);
    }
    const auto variants = encoded.span<Variant>();
    for (size_t i = 0; i < variants.size(); ++i) {
      if ((i & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
      GRADFLOW_RETURN_IF_ERROR(Check(encoded, static_cast<int64_t>(i), rank));
    }
    const auto value = [&](size_t i) -> const RaggedValue& {
      return *variants[i].get<RaggedValue>();
    };
    if (dims == 0) {
      for (int i = 0; i < rank; ++i) ctx.set_output(i, value(0).splits()[i]);
      ctx.set_output(outputs, value(0).values());
      return absl::OkStatus();
    }
    GRADFLOW_RETURN_IF_ERROR(WriteUniformSplits(ctx, encoded.shape()));
    // The sizes of the values, followed by their splits.
    for (int level = -1; level < rank; ++level) {
      int64_t count = 0;
      int64_t total = 0;
      for (size_t i = 0; i < variants.size(); ++i) {
        count += level < 0 ? 1 : value(i).splits()[level].NumElements() - 1;
        // Values without elements may have any number of rows.
        const int64_t size = Size(value(i), level + 1);
        if (size > std::numeric_limits<int64_t>::max() - total) return TooManyRows();
        total += size;
      }
      GRADFLOW_ASSIGN_OR_RETURN(Tensor* const splits,
                                AllocateSplits(ctx, dims + level, count, total));
      WriteIndex(splits, 0, 0);
      int64_t next = 0;
      int64_t start = 0;
      for (size_t i = 0; i < variants.size(); ++i) {
        if ((i & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
        if (level >= 0) {
          const Tensor& own = value(i).splits()[level];
          const IndexReader reader(own);
          for (int64_t k = 1; k < own.NumElements(); ++k) {
            WriteIndex(splits, ++next, start + reader[k]);
          }
        }
        start += Size(value(i), level + 1);
        if (level < 0) WriteIndex(splits, ++next, start);
      }
    }
    return Values(ctx, encoded, outputs);
  }

 private:
  // Returns INVALID_ARGUMENT unless variant i holds a ragged tensor of `rank` ragged dimensions.
  absl::Status Check(const Tensor& encoded, int64_t i, int rank) const {
    const auto name = [&] { return ElementName("encoded_ragged", encoded.shape(), i); };
    const auto* const value = encoded.span<Variant>()[i].get<RaggedValue>();
    if (value == nullptr) {
      return errors::InvalidArgument(
          name(), " holds no ragged tensor, but ",
          encoded.span<Variant>()[i].is_empty()
              ? "nothing"
              : absl::StrCat("a value of type '",
                             errors::Printable(encoded.span<Variant>()[i].TypeName()), "'"));
    }
    const int levels = static_cast<int>(value->splits().size());
    if (levels != rank) {
      return errors::InvalidArgument(name(), " has ", levels, " ragged dimensions, expected ",
                                     rank);
    }
    const Tensor& values = value->values();
    if (values.dtype() != values_type_) {
      return errors::InvalidArgument(name(), " has values of type ", DataTypeString(values.dtype()),
                                     ", expected ", DataTypeString(values_type_));
    }
    // A scalar variant may hold any tensor.
    if (values.dims() == 0 && (rank > 0 || encoded.dims() > 0)) {
      return errors::InvalidArgument("the values of ", name(), " must not be a scalar");
    }
    for (int k = 0; k < rank; ++k) {
      const Tensor& splits = value->splits()[k];
      if (splits.dtype() != splits_type_) {
        return errors::InvalidArgument(name(), " has splits of type ",
                                       DataTypeString(splits.dtype()), ", expected ",
                                       DataTypeString(splits_type_));
      }
      GRADFLOW_RETURN_IF_ERROR(
          CheckRowSplits(absl::StrCat("splits ", k, " of ", name()), splits, Size(*value, k + 1)));
    }
    return absl::OkStatus();
  }

  // The number of rows below `level` levels.
  static int64_t Size(const RaggedValue& value, int level) {
    return level < static_cast<int>(value.splits().size()) ? value.splits()[level].NumElements() - 1
                                                           : value.values().dim_size(0);
  }

  static absl::Status Values(KernelContext& ctx, const Tensor& encoded, int output) {
    const auto variants = encoded.span<Variant>();
    // The shape of the values of no ragged tensors is not known.
    TensorShape shape({0});
    double bytes = 0;
    for (size_t i = 0; i < variants.size(); ++i) {
      const Tensor& values = variants[i].get<RaggedValue>()->values();
      if (i == 0) {
        shape = values.shape();
      } else {
        const int64_t rows = shape.dim_size(0);
        TensorShape same = shape;
        GRADFLOW_RETURN_IF_ERROR(same.SetDimWithStatus(0, values.dim_size(0)));
        if (same != values.shape()) {
          return errors::InvalidArgument(
              "the values of encoded ragged tensors must have the same inner shape, but have ",
              "shapes ", variants[0].get<RaggedValue>()->values().shape().DebugString(), " and ",
              values.shape().DebugString());
        }
        if (rows > std::numeric_limits<int64_t>::max() - values.dim_size(0)) return TooManyRows();
        GRADFLOW_RETURN_IF_ERROR(shape.SetDimWithStatus(0, rows + values.dim_size(0)));
      }
      if (values.dtype() == DT_STRING) {
        for (const tstring& s : values.span<tstring>()) bytes += static_cast<double>(s.size());
      }
    }
    ctx.ExpectStringBytes(bytes);
    Tensor* all = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(output, shape, &all));
    int64_t next = 0;
    for (size_t i = 0; i < variants.size(); ++i) {
      if ((i & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
      const Tensor& values = variants[i].get<RaggedValue>()->values();
      CopyElements(values, 0, values.NumElements(), all, next);
      next += values.NumElements();
    }
    return absl::OkStatus();
  }

  int input_rank_ = -1;
  DataType values_type_ = DT_INVALID;
  DataType splits_type_ = DT_INVALID;
};

// ---- RaggedTensorToVariantGradient ----

absl::Status GradientShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, c.ShapeFromInput(2));
  c.set_output(0, shape);
  return absl::OkStatus();
}

// A variant without a value stands for zeros: no gradient reaches this row.
absl::Status Gradient(KernelContext& ctx) {
  const Tensor& encoded = ctx.input(0);
  const Tensor& row_splits = ctx.input(1);
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector sizes, ctx.Ints(2, "dense_values_shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(sizes));
  const auto variants = encoded.span<Variant>();
  const int64_t count = encoded.NumElements();
  const bool has_splits = row_splits.dims() == 1 && row_splits.NumElements() == count + 1;
  if (row_splits.dims() > 1 || (row_splits.dims() == 1 && encoded.dims() > 0 && !has_splits)) {
    return errors::InvalidArgument("row_splits must be a scalar or a vector of ", count + 1,
                                   " elements, but has shape ", row_splits.shape().DebugString());
  }
  const IndexReader splits(row_splits);
  const int64_t rows = shape.dims() == 0 ? 1 : shape.dim_size(0);
  const int64_t width = rows == 0 ? 0 : shape.num_elements() / rows;
  // The number of elements of variant i.
  const auto size = [&](int64_t i) {
    if (const auto* const value = variants[i].get<RaggedValue>()) {
      return value->values().NumElements();
    }
    if (count == 1) return shape.num_elements();
    if (!has_splits) return width;
    const int64_t begin = splits[i];
    const int64_t end = splits[i + 1];
    return begin < 0 || end < begin || end > rows ? -1 : (end - begin) * width;
  };
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto* const value = variants[i].get<RaggedValue>();
    if (value == nullptr && !variants[i].is_empty()) {
      return errors::InvalidArgument(ElementName("encoded_ragged_grad", encoded.shape(), i),
                                     " must hold a ragged tensor, but holds a value of type '",
                                     errors::Printable(variants[i].TypeName()), "'");
    }
    if (value != nullptr && value->values().dtype() != ctx.expected_output_dtype(0)) {
      return errors::InvalidArgument(ElementName("encoded_ragged_grad", encoded.shape(), i),
                                     " has values of type ",
                                     DataTypeString(value->values().dtype()), ", expected ",
                                     DataTypeString(ctx.expected_output_dtype(0)));
    }
    const int64_t own = size(i);
    if (own < 0 || own > shape.num_elements() - total) {
      total = -1;
      break;
    }
    total += own;
  }
  if (total != shape.num_elements()) {
    return errors::InvalidArgument(
        "the gradients of the values must have as many elements as dense_values_shape ",
        shape.DebugString(), ", but do not");
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (DataTypeIsPlainBytes(output->dtype())) SetZero(ctx.run(), output);
  int64_t next = 0;
  for (int64_t i = 0; i < count; ++i) {
    if ((i & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
    if (const auto* const value = variants[i].get<RaggedValue>()) {
      CopyElements(value->values(), 0, value->values().NumElements(), output, next);
    }
    next += size(i);
  }
  return absl::OkStatus();
}

// The types of the values.
DataTypeVector Types() {
  DataTypeVector types;
  for (const DataType type : AllDataTypes()) {
    if (type != DT_VARIANT && type != DT_RESOURCE) types.push_back(type);
  }
  return types;
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RaggedTensorToVariant")
      .Group("array_ops")
      .Input("rt_nested_splits: RAGGED_RANK * Tsplits")
      .Input("rt_dense_values: Tvalues")
      .Output("encoded_ragged: variant")
      .Attr("RAGGED_RANK: int >= 0")
      .Attr("Tvalues: type")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Attr("batched_input: bool")
      .Shape(ToVariantShape)
      .Doc(R"(Returns a ragged tensor as a variant, or each of its rows as one.

rt_nested_splits: The splits of the ragged tensor, from the outermost dimension on.
rt_dense_values: Its values.
encoded_ragged: The variants.
RAGGED_RANK: The number of ragged dimensions.
Tvalues: The type of the values.
Tsplits: The type of the splits.
batched_input: If true, the result is a vector with a variant for each row, whose ragged dimensions
  are one less. If false, it is a scalar.)");
  registry.Kernel("RaggedTensorToVariant", MakeKernel<ToVariantKernel>).Types("Tvalues", Types());
  registry.Op("RaggedTensorFromVariant")
      .Group("array_ops")
      .Input("encoded_ragged: variant")
      .Output("output_nested_splits: output_ragged_rank * Tsplits")
      .Output("output_dense_values: Tvalues")
      .Attr("input_ragged_rank: int >= -1")
      .Attr("output_ragged_rank: int >= 0")
      .Attr("Tvalues: type")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(FromVariantShape)
      .Doc(
          R"(Returns the ragged tensor of a variant, or stacks the ragged tensors of several variants.

encoded_ragged: The variants.
output_nested_splits: The splits of the ragged tensor, from the outermost dimension on.
output_dense_values: Its values.
input_ragged_rank: The number of ragged dimensions of each variant, or -1 to infer it.
output_ragged_rank: The number of ragged dimensions of the result: the sum of `input_ragged_rank`
  and the rank of `encoded_ragged`.
Tvalues: The type of the values.
Tsplits: The type of the splits.)");
  registry.Kernel("RaggedTensorFromVariant", MakeKernel<FromVariantKernel>)
      .Types("Tvalues", Types());
  registry.Op("RaggedTensorToVariantGradient")
      .Group("array_ops")
      .Input("encoded_ragged_grad: variant")
      .Input("row_splits: Tsplits")
      .Input("dense_values_shape: int32")
      .Output("dense_values_grad: Tvalues")
      .Attr("Tvalues: type")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(GradientShape)
      .Doc(R"(Computes the gradient of RaggedTensorToVariant for the values.

encoded_ragged_grad: The gradient of the variants. One without a value stands for zeros.
row_splits: The outermost splits of the ragged tensor; a scalar if it has none.
dense_values_shape: The shape of the values.
dense_values_grad: The gradient of the values.
Tvalues: The type of the values.
Tsplits: The type of the splits.)");
  registry.Kernel("RaggedTensorToVariantGradient", MakeFunctionKernel<Gradient>)
      .Types("Tvalues", Types());
}

}  // namespace gradflow::ragged_variant
