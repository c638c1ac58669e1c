#include "gradflow/ops/list/list_inputs.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {
namespace {

absl::Status WrongScalarShape(absl::string_view name, int64_t value) {
  return errors::InvalidArgument(name,
                                 " must be a vector, or the scalar -1 for an unknown shape, but is "
                                 "the scalar ",
                                 value);
}

}  // namespace

absl::StatusOr<PartialTensorShape> ElementShape(const ShapeContext& c, int i) {
  const PartialTensorShape& shape = c.input(i);
  if (shape.unknown_rank()) return PartialTensorShape();
  if (shape.dims() == 1) return c.ShapeFromInput(i, /*allow_unknown=*/true);
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost(c.input_name(i), shape, 1));
  std::vector<int64_t> value;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(i, &value));
  if (known && value[0] != -1) return WrongScalarShape(c.input_name(i), value[0]);
  return PartialTensorShape();
}

absl::StatusOr<PartialTensorShape> ElementShape(const KernelContext& ctx, int i,
                                                absl::string_view name) {
  const Tensor& input = ctx.input(i);
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost(name, input.shape(), 1));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector values, ctx.Ints(i, name));
  if (input.dims() == 0) {
    if (values[0] != -1) return WrongScalarShape(name, values[0]);
    return PartialTensorShape();
  }
  absl::StatusOr<PartialTensorShape> shape = PartialTensorShape::Make(values);
  if (!shape.ok()) return errors::Prefix(absl::StrCat(name, ": "), shape.status());
  return shape;
}

namespace {

// Returns the list of a variant.
absl::StatusOr<const TensorList*> ListOf(const Variant& variant, absl::string_view name) {
  const auto* const list = variant.get<TensorList>();
  if (list != nullptr) return list;
  return errors::InvalidArgument(
      name, " must hold a list of tensors, but holds ",
      variant.is_empty()
          ? "no value"
          : absl::StrCat("a value of type '", errors::Printable(variant.TypeName()), "'"));
}

}  // namespace

absl::StatusOr<const TensorList*> ListInput(const KernelContext& ctx, int i,
                                            absl::string_view name) {
  const Tensor& input = ctx.input(i);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
  if (input.dtype() != DT_VARIANT) {
    return errors::InvalidArgument(name, " must be of type variant, but is ",
                                   DataTypeString(input.dtype()));
  }
  return ListOf(input.span<Variant>()[0], name);
}

absl::Status CheckElementType(const TensorList& list, DataType element_dtype) {
  if (list.element_dtype() == element_dtype) return absl::OkStatus();
  return errors::InvalidArgument("element_dtype is ", DataTypeString(element_dtype),
                                 ", but the list has elements of type ",
                                 DataTypeString(list.element_dtype()));
}

absl::StatusOr<TensorList*> ListOutput(KernelContext& ctx, int input, absl::string_view name,
                                       int output) {
  GRADFLOW_RETURN_IF_ERROR(ListInput(ctx, input, name).status());
  Tensor* target = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(input, output, {}, &target));
  Variant& variant = target->span<Variant>()[0];
  if (target->raw_data() != ctx.input(input).raw_data()) {
    variant = ctx.input(input).span<Variant>()[0];
  }
  return variant.get<TensorList>();
}

absl::Status SetListOutput(KernelContext& ctx, TensorList list) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  output->span<Variant>()[0] = std::move(list);
  return absl::OkStatus();
}

absl::StatusOr<PartialTensorShape> MergeElementShape(const TensorList& list,
                                                     const PartialTensorShape& shape) {
  if (!list.element_shape().IsCompatibleWith(shape)) {
    return errors::InvalidArgument(
        "the list has elements of shape ", list.element_shape().DebugString(),
        ", which is not compatible with element_shape ", shape.DebugString());
  }
  return list.element_shape().MergeWith(shape);
}

absl::StatusOr<TensorShape> UnsetShape(const TensorList& list, PartialTensorShape shape,
                                       absl::string_view what) {
  for (int64_t i = 0; i < list.size() && !shape.IsFullyDefined(); ++i) {
    if (!list.IsSet(i)) continue;
    const TensorShape& element = list.elements()[i].shape();
    if (!shape.IsCompatibleWith(element)) {
      return errors::InvalidArgument("element ", i, " of the list has shape ",
                                     element.DebugString(), ", expected ", shape.DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(shape, shape.MergeWith(element));
  }
  if (!shape.IsFullyDefined()) {
    return errors::InvalidArgument("the shape of ", what,
                                   " is not fully known: ", shape.DebugString());
  }
  return TensorShape::Make(shape.dim_sizes());
}

absl::StatusOr<Tensor> MakeZeros(KernelContext& ctx, DataType dtype, const TensorShape& shape) {
  Tensor zeros;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(dtype, shape, &zeros));
  if (DataTypeIsPlainBytes(dtype)) SetZero(ctx.run(), &zeros);
  return zeros;
}

absl::Status StackElements(KernelContext& ctx, const TensorList& list,
                           const PartialTensorShape& shape, int64_t count,
                           absl::FunctionRef<int64_t(int64_t)> index) {
  PartialTensorShape merged = shape;
  double string_bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!list.IsSet(index(i))) continue;
    const Tensor& element = list.elements()[index(i)];
    string_bytes += static_cast<double>(element.StringBytes());
    if (!merged.IsCompatibleWith(element.shape())) {
      return errors::InvalidArgument("element ", index(i), " of the list has shape ",
                                     element.shape().DebugString(), ", expected ",
                                     merged.DebugString());
    }
    if (!merged.IsFullyDefined()) merged = element.shape();
  }
  if (!merged.IsFullyDefined()) {
    return errors::InvalidArgument(
        "the shape of elements is not fully known: ", merged.DebugString(), ", and ",
        count == 0 ? "there are none" : "none of them is set");
  }
  DimVector dims = {count};
  dims.insert(dims.end(), merged.dim_sizes().begin(), merged.dim_sizes().end());
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape stacked, TensorShape::Make(dims));
  ctx.ExpectStringBytes(string_bytes);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, stacked, &output));
  if (output->NumElements() == 0) return absl::OkStatus();
  const int64_t width = output->NumElements() / count;
  const double cost = 10 + static_cast<double>(width) * CopyNanoseconds(output->dtype());
  ParallelFor(ctx, count, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (list.IsSet(index(i))) {
        CopyElements(list.elements()[index(i)], 0, output, i * width, width);
      } else {
        ClearElements(output, i * width, width);
      }
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TakeRows(KernelContext& ctx, const Tensor& tensor, int64_t start,
                                int64_t limit, bool squeeze) {
  const Tensor rows = squeeze ? tensor.SubSlice(start) : tensor.Slice(start, limit);
  if (rows.IsAligned() || rows.NumElements() == 0) return rows;
  Tensor copy;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(rows.dtype(), rows.shape(), &copy));
  GRADFLOW_RETURN_IF_ERROR(copy.ChargeStrings(rows.StringBytes()));
  CopyElements(rows, 0, &copy, 0, rows.NumElements());
  return copy;
}

}  // namespace gradflow
