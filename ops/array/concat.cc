// Concat, ConcatV2, QuantizedConcat, ConcatOffset and ParallelConcat.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/quant/quantized_range.h"

namespace gradflow::concat {
namespace {

// Returns the shape of `values` concatenated along `axis`. REQUIRES: at least one value has a known
// rank
absl::StatusOr<PartialTensorShape> ConcatShape(absl::Span<const PartialTensorShape> values,
                                               int64_t axis) {
  // The dimensions that all values share; dimension `axis` is unknown.
  PartialTensorShape common;
  int d = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].unknown_rank()) continue;
    if (values[i].dims() == 0) {
      return errors::InvalidArgument("values[", i, "] is a scalar, which cannot be concatenated");
    }
    if (d < 0) {
      GRADFLOW_ASSIGN_OR_RETURN(d, CanonicalAxis("axis", axis, values[i].dims()));
    }
    PartialTensorShape others = values[i];
    if (d < others.dims()) others.set_dim(d, -1);
    if (!common.IsCompatibleWith(others)) {
      return errors::InvalidArgument("values[", i, "] has shape ", values[i].DebugString(),
                                     ", expected ", common.DebugString(),
                                     " to concatenate with the previous values along axis ", d);
    }
    GRADFLOW_ASSIGN_OR_RETURN(common, common.MergeWith(others));
  }
  int64_t total = 0;
  for (const PartialTensorShape& value : values) {
    const int64_t size = value.unknown_rank() ? -1 : value.dim_size(d);
    if (size < 0) return common;
    if (__builtin_add_overflow(total, size, &total)) {
      return errors::InvalidArgument("the sizes along axis ", d, " add up to more than 2^63 - 1");
    }
  }
  common.set_dim(d, total);
  return PartialTensorShape::Make(common.dim_sizes());
}

// Infers output 0, the concatenation of `count` inputs, starting at input `first`.
absl::Status ConcatValuesShape(ShapeContext& c, int axis_input, int first, int count) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(axis_input, 0));
  std::vector<int64_t> axis;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(axis_input, &axis));
  std::vector<PartialTensorShape> values;
  // All values have the same rank.
  PartialTensorShape ranks;
  for (int i = 0; i < count; ++i) {
    values.push_back(c.input(first + i));
    if (values[i].unknown_rank()) continue;
    const PartialTensorShape rank = PartialTensorShape::UnknownOfRank(values[i].dims());
    if (!ranks.IsCompatibleWith(rank)) {
      return errors::InvalidArgument("values[", i, "] has shape ", values[i].DebugString(),
                                     ", expected rank ", ranks.dims(),
                                     ", the rank of the previous values");
    }
    ranks = rank;
  }
  if (ranks.unknown_rank() || !known) {
    c.set_output(0, std::move(ranks));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, ConcatShape(values, axis[0]));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The axis is the last input of ConcatV2 and the first input of Concat.
template <bool AxisFirst>
absl::Status ConcatShapeFn(ShapeContext& c) {
  const int count = c.num_inputs() - 1;
  return ConcatValuesShape(c, AxisFirst ? 0 : count, AxisFirst ? 1 : 0, count);
}

// Concatenates `count` inputs, starting at input `first`.
absl::Status ConcatInputs(KernelContext& ctx, int first, int count, int64_t axis_value) {
  std::vector<PartialTensorShape> values;
  values.reserve(count);
  for (int i = 0; i < count; ++i) values.emplace_back(ctx.input(first + i).shape());
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape joined, ConcatShape(values, axis_value));
  const TensorShape shape(joined.dim_sizes());
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("axis", axis_value, shape.dims()));
  for (int i = 0; i < count; ++i) {
    // All other values are empty.
    if (ctx.input(first + i).shape() == shape) {
      ctx.set_output(0, ctx.input(first + i));
      return absl::OkStatus();
    }
  }
  ctx.ExpectStringBytes(InputStringBytes(ctx, first, first + count));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  const DimVector to = RowMajorStrides(shape.dim_sizes());
  int64_t start = 0;
  for (int i = 0; i < count && !ctx.ShouldStop(); ++i) {
    const absl::Span<const int64_t> dims = ctx.input(first + i).shape().dim_sizes();
    CopyStrided(ctx.run(), dims, ctx.input(first + i), {0, RowMajorStrides(dims)}, output,
                {start * to[axis], to});
    start += dims[axis];
  }
  return absl::OkStatus();
}

template <bool AxisFirst>
absl::Status Concat(KernelContext& ctx) {
  const int count = ctx.num_inputs() - 1;
  const int axis_input = AxisFirst ? 0 : count;
  GRADFLOW_RETURN_IF_ERROR(CheckScalarOrVector1("axis", ctx.input(axis_input).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector axis, ctx.Ints(axis_input, "axis"));
  return ConcatInputs(ctx, AxisFirst ? 1 : 0, count, axis[0]);
}

// ---- QuantizedConcat ----

// The inputs are concat_dim, N values, N minima and N maxima.
absl::Status QuantizedConcatShape(ShapeContext& c) {
  const int count = (c.num_inputs() - 1) / 3;
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 1 + count, 2 * count));
  return ConcatValuesShape(c, 0, 1, count);
}

// Returns the range of the result: it contains all ranges and 0. Signed integers have a symmetric
// range.
QuantizedRange JoinedRange(const std::vector<QuantizedRange>& ranges, bool is_signed) {
  QuantizedRange joined = {0, ranges[0].max};
  for (const QuantizedRange& range : ranges) {
    joined.min = std::min(joined.min, range.min);
    joined.max = std::max(joined.max, range.max);
  }
  if (!is_signed) return joined;
  const float most = std::max(-joined.min, std::fabs(joined.max));
  return {-most, most};
}

template <typename Q>
class QuantizedConcatKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const int count = (ctx.num_inputs() - 1) / 3;
    std::vector<QuantizedRange> ranges(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      QuantizedRange& range = ranges[static_cast<size_t>(i)];
      GRADFLOW_ASSIGN_OR_RETURN(
          range.min, FiniteScalar(ctx, 1 + count + i, absl::StrCat("input_mins[", i, "]")));
      GRADFLOW_ASSIGN_OR_RETURN(
          range.max, FiniteScalar(ctx, 1 + 2 * count + i, absl::StrCat("input_maxes[", i, "]")));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t axis, ctx.ScalarInt(0, "concat_dim"));
    const QuantizedRange joined = JoinedRange(ranges, std::is_signed_v<Q>);
    std::vector<Tensor> values;
    for (int i = 0; i < count; ++i) {
      const QuantizedRange& range = ranges[static_cast<size_t>(i)];
      values.push_back(ctx.input(1 + i));
      if (range.min == joined.min && range.max == joined.max) continue;
      const Tensor from = values.back();
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(from.dtype(), from.shape(), &values.back()));
      const auto* const x = static_cast<const Q*>(from.raw_data());
      auto* const y = static_cast<Q*>(values.back().raw_data());
      const FloatRequantizer<Q, Q> requantize(range, joined);
      ParallelFor(ctx, from.NumElements(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) y[k] = requantize(x[k]);
      });
    }
    KernelContext concat = ctx.WithInputs(absl::MakeSpan(values));
    GRADFLOW_RETURN_IF_ERROR(ConcatInputs(concat, 0, count, axis));
    return OutputRange(ctx, 1, joined);
  }

 private:
  DataTypeVector types_;
};

// ---- ParallelConcat ----

// Returns INVALID_ARGUMENT unless `count` values of shape `value` fill `shape`. Errors call the
// value values[i].
absl::Status CheckRows(const PartialTensorShape& shape, int count, int i,
                       const PartialTensorShape& value) {
  if (!shape.IsFullyDefined() || shape.dims() == 0 || shape.dim_size(0) != count) {
    return errors::InvalidArgument("shape must be fully known, with N = ", count,
                                   " as first dimension, but is ", shape.DebugString());
  }
  PartialTensorShape row = shape;
  row.set_dim(0, 1);
  if (value.IsCompatibleWith(row)) return absl::OkStatus();
  return errors::InvalidArgument("values[", i, "] must have shape ", row.DebugString(),
                                 ", but has shape ", value.DebugString());
}

absl::Status ParallelConcatShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  for (int i = 0; i < c.num_inputs(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckRows(shape, c.num_inputs(), i, c.input(i)));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class ParallelConcatKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("shape", &shape_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckRows(shape_, ctx.num_inputs(), i, ctx.input(i).shape()));
    }
    return ConcatInputs(ctx, 0, ctx.num_inputs(), 0);
  }

 private:
  PartialTensorShape shape_;
};

// ---- ConcatOffset ----

absl::Status ConcatOffsetShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(1);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!shape.IsCompatibleWith(c.input(i))) {
      return errors::InvalidArgument("shape must be vectors of one length, but shape[", i - 1,
                                     "] has shape ", c.input(i).DebugString(), " after ",
                                     shape.DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(i)));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shape);
  return absl::OkStatus();
}

absl::Status ConcatOffset(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t concat_dim, ctx.ScalarInt(0, "concat_dim"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "shape[0]"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector first, ctx.Ints(1, "shape[0]"));
  GRADFLOW_ASSIGN_OR_RETURN(
      const int axis, CanonicalAxis("concat_dim", concat_dim, static_cast<int>(first.size())));
  const bool is_int32 = ctx.expected_output_dtype(0) == DT_INT32;
  int64_t start = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const std::string name = absl::StrCat("shape[", i, "]");
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(1, "shape[0]", i + 1, name));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector sizes, ctx.Ints(i + 1, name));
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (static_cast<int>(d) == axis || sizes[d] == first[d]) continue;
      return errors::InvalidArgument(name, "[", d, "] is ", sizes[d], ", expected ", first[d],
                                     ", as in shape[0]");
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, ctx.input(1).shape(), &output));
    for (size_t d = 0; d < sizes.size(); ++d) WriteIndex(output, d, 0);
    WriteIndex(output, axis, start);
    if (__builtin_add_overflow(start, sizes[axis], &start) ||
        (is_int32 && start != static_cast<int32_t>(start) && i + 1 < ctx.num_outputs())) {
      return errors::InvalidArgument("the sizes along concat_dim ", axis,
                                     " add up to more than fits in ",
                                     DataTypeString(ctx.expected_output_dtype(0)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ConcatV2")
      .Group("array_ops")
      .Alias("Concat")
      .Input("values: N * T")
      .Input("axis: Tidx")
      .Output("output: T")
      .Attr("N: int >= 2")
      .Attr("T: type")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(ConcatShapeFn<false>)
      .Doc(R"(Concatenates tensors along one dimension.

values: The tensors. Their shapes must agree in all dimensions except `axis`.
axis: A scalar: the dimension. Negative values count from the end.
output: The concatenated tensor.
N: The number of tensors.
T: The type of the tensors.
Tidx: The type of `axis`.)");
  registry.Kernel("ConcatV2", MakeFunctionKernel<Concat<false>>).Types("T", AllDataTypes());

  registry.Op("Concat")
      .Group("array_ops")
      .HandWritten()  // TensorFlow's class Concat is ConcatV2.
      .Input("concat_dim: int32")
      .Input("values: N * T")
      .Output("output: T")
      .Attr("N: int >= 2")
      .Attr("T: type")
      .Shape(ConcatShapeFn<true>)
      .Doc(R"(Concatenates tensors along one dimension.

concat_dim: A scalar: the dimension. Negative values count from the end.
values: The tensors. Their shapes must agree in all dimensions except `concat_dim`.
output: The concatenated tensor.
N: The number of tensors.
T: The type of the tensors.)");
  registry.Kernel("Concat", MakeFunctionKernel<Concat<true>>).Types("T", AllDataTypes());

  registry.Op("QuantizedConcat")
      .Group("array_ops")
      .Input("concat_dim: int32")
      .Input("values: N * T")
      .Input("input_mins: N * float")
      .Input("input_maxes: N * float")
      .Output("output: T")
      .Output("output_min: float")
      .Output("output_max: float")
      .Attr("N: int >= 2")
      .Attr("T: type")
      .Shape(QuantizedConcatShape)
      .Doc(R"(Concatenates quantized tensors along one dimension.

Integers of other ranges than the result's are converted.

concat_dim: A scalar: the dimension. Unlike in TensorFlow, negative values count from the end.
values: The tensors. Their shapes must agree in all dimensions except `concat_dim`.
input_mins: Scalars: the numbers of the lowest integers of `values`.
input_maxes: Scalars: the numbers of the highest integers of `values`.
output: The concatenated tensor.
output_min: The least of all `input_mins` and 0; for signed integers, the negated `output_max`.
output_max: The greatest of all `input_maxes`; for signed integers, the greatest magnitude of a
  bound.
N: The number of tensors.
T: The type of the tensors.)");
  ForEachType(TypeList<quint8, qint8, qint32>(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("QuantizedConcat", MakeKernel<QuantizedConcatKernel<decltype(T::value)>>)
        .template Type<T>("T");
  });

  registry.Op("ParallelConcat")
      .Group("array_ops")
      .Input("values: N * T")
      .Output("output: T")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Attr("shape: shape")
      .Shape(ParallelConcatShape)
      .Doc(R"(Concatenates tensors of one row along the first dimension.

values: The tensors. Their first dimension is 1.
output: The concatenated tensor: row i is `values[i]`.
N: The number of tensors.
T: The type of the tensors.
shape: The shape of the result. Its first dimension is N, the other dimensions are the dimensions of
  the tensors.)");
  registry.Kernel("ParallelConcat", MakeKernel<ParallelConcatKernel>).Types("T", AllDataTypes());

  registry.Op("ConcatOffset")
      .Group("array_ops")
      .Input("concat_dim: int32")
      .Input("shape: N * shape_type")
      .Output("offset: N * shape_type")
      .Attr("N: int >= 2")
      .Attr("shape_type: {int32, int64} = DT_INT32")
      .Shape(ConcatOffsetShape)
      .Doc(R"(Returns where tensors begin in their concatenation.

concat_dim: A scalar: the dimension of the concatenation. Negative values count from the end.
shape: The shapes of the tensors, as vectors. They must agree in all other dimensions.
offset: For each tensor, the index of its first element in the concatenation.
N: The number of tensors.
shape_type: The type of the shapes.)");
  registry.Kernel("ConcatOffset", MakeFunctionKernel<ConcatOffset>);
}

}  // namespace gradflow::concat
