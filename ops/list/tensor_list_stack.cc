// Lists of tensors: ops between a list and a tensor that has its elements as rows.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/list/list_inputs.h"

namespace gradflow::tensor_list_stack {
namespace {

// Returns INVALID_ARGUMENT unless `tensor` has type `dtype` and at least one dimension.
absl::Status CheckTensor(const Tensor& tensor, DataType dtype) {
  if (tensor.dtype() != dtype) {
    return errors::InvalidArgument("tensor must be of type ", DataTypeString(dtype), ", but is ",
                                   DataTypeString(tensor.dtype()));
  }
  return CheckRankAtLeast("tensor", tensor.shape(), 1);
}

// Returns the shape without its first dimension, which has rank at least 1.
PartialTensorShape RowShape(const PartialTensorShape& shape) {
  if (shape.unknown_rank()) return shape;
  return PartialTensorShape(shape.dim_sizes().subspan(1));
}

// Returns INVALID_ARGUMENT unless rows of `tensor` may be elements of shape `element`.
absl::Status CheckRows(const PartialTensorShape& tensor, const PartialTensorShape& element) {
  if (tensor.unknown_rank() || element.IsCompatibleWith(RowShape(tensor))) return absl::OkStatus();
  return errors::InvalidArgument("a row of tensor, which has shape ", tensor.DebugString(),
                                 ", is not compatible with element_shape ", element.DebugString());
}

// ---- TensorListFromTensor, TensorListStack ----

// The tensor is input 0, the shape of the elements input `shape`.
absl::Status FromTensorShape(ShapeContext& c, int shape) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape element, ElementShape(c, shape));
  c.set_output(0, TensorShape());
  return CheckRows(c.input(0), element);
}

class FromTensorKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& tensor = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckTensor(tensor, dtype_));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 1, "element_shape"));
    GRADFLOW_RETURN_IF_ERROR(CheckRows(tensor.shape(), shape));
    GRADFLOW_ASSIGN_OR_RETURN(TensorList list,
                              TensorList::Make(dtype_, shape, -1, ctx.allocator()));
    GRADFLOW_RETURN_IF_ERROR(list.Resize(tensor.dim_size(0)));
    for (int64_t i = 0; i < tensor.dim_size(0) && !ctx.ShouldStop(); ++i) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor row, TakeRows(ctx, tensor, i, i + 1, /*squeeze=*/true));
      GRADFLOW_RETURN_IF_ERROR(list.Set(i, std::move(row)));
    }
    return SetListOutput(ctx, std::move(list));
  }
};

absl::Status StackShape(ShapeContext& c) {
  int64_t num_elements;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("num_elements", &num_elements));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape element, ElementShape(c, 1));
  PartialTensorShape stacked;
  GRADFLOW_RETURN_IF_ERROR(PartialTensorShape({num_elements < 0 ? -1 : num_elements})
                               .ConcatenateWithStatus(element, &stacked));
  c.set_output(0, std::move(stacked));
  return absl::OkStatus();
}

class ListStackKernel final : public ListKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_elements", &num_elements_));
    return ListKernel::Init(construction);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorList* const list, ListInput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    if (num_elements_ >= 0 && list->size() != num_elements_) {
      return errors::InvalidArgument("the list must have num_elements = ", num_elements_,
                                     " elements, but has ", list->size());
    }
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape input,
                              ElementShape(ctx, 1, "element_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, MergeElementShape(*list, input));
    return StackElements(ctx, *list, shape, list->size(), [](int64_t i) { return i; });
  }

 private:
  int64_t num_elements_ = -1;
};

// ---- TensorListGather, TensorListScatter ----

absl::Status GatherShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape element, ElementShape(c, 2));
  PartialTensorShape stacked;
  GRADFLOW_RETURN_IF_ERROR(
      PartialTensorShape({c.Dim(1, 0)}).ConcatenateWithStatus(element, &stacked));
  c.set_output(0, std::move(stacked));
  return absl::OkStatus();
}

absl::Status CheckIndices(const KernelContext& ctx, int i) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(i, "indices"));
  if (ctx.input(i).dtype() == DT_INT32) return absl::OkStatus();
  return errors::InvalidArgument("indices must be of type int32, but are ",
                                 DataTypeString(ctx.input(i).dtype()));
}

class ListGatherKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorList* const list, ListInput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    GRADFLOW_RETURN_IF_ERROR(CheckIndices(ctx, 1));
    const absl::Span<const int32_t> indices = ctx.input(1).span<int32_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] >= 0 && indices[i] < list->size()) continue;
      return errors::InvalidArgument("indices[", i, "] is ", indices[i], ", but the list has ",
                                     list->size(), list->size() == 1 ? " element" : " elements");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape input,
                              ElementShape(ctx, 2, "element_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, MergeElementShape(*list, input));
    return StackElements(ctx, *list, shape, static_cast<int64_t>(indices.size()),
                         [&](int64_t i) { return int64_t{indices[i]}; });
  }
};

// Returns INVALID_ARGUMENT unless there are as many indices as rows.
absl::Status CheckCounts(int64_t rows, int64_t indices) {
  if (rows < 0 || indices < 0 || rows == indices) return absl::OkStatus();
  return errors::InvalidArgument("there are ", indices, " indices, but tensor has ", rows, " rows");
}

absl::Status ScatterShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckCounts(c.Dim(0, 0), c.Dim(1, 0)));
  if (c.num_inputs() > 3) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  return FromTensorShape(c, 2);
}

// Sets element indices[i] of `list` to row i of `tensor`. Resizes the list to include them if
// `limit` is negative; otherwise they must be less than `limit`.
absl::Status ScatterRows(KernelContext& ctx, const Tensor& tensor, const Tensor& indices,
                         int64_t limit, TensorList* list) {
  GRADFLOW_RETURN_IF_ERROR(CheckCounts(tensor.dim_size(0), indices.NumElements()));
  const absl::Span<const int32_t> index = indices.span<int32_t>();
  int64_t size = list->size();
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0) {
      return errors::InvalidArgument("indices must not be negative, but indices[", i, "] is ",
                                     index[i]);
    }
    if (limit >= 0 && index[i] >= limit) {
      return errors::InvalidArgument("indices[", i, "] is ", index[i],
                                     ", but the list has num_elements = ", limit, " elements");
    }
    size = std::max(size, int64_t{index[i]} + 1);
  }
  GRADFLOW_RETURN_IF_ERROR(list->Resize(size));
  for (size_t i = 0; i < index.size() && !ctx.ShouldStop(); ++i) {
    const auto row = static_cast<int64_t>(i);
    GRADFLOW_ASSIGN_OR_RETURN(Tensor element,
                              TakeRows(ctx, tensor, row, row + 1, /*squeeze=*/true));
    GRADFLOW_RETURN_IF_ERROR(list->Set(index[i], std::move(element)));
  }
  return absl::OkStatus();
}

// TensorListScatter and, with the number of elements, TensorListScatterV2.
class ListScatterKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& tensor = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckTensor(tensor, dtype_));
    GRADFLOW_RETURN_IF_ERROR(CheckIndices(ctx, 1));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 2, "element_shape"));
    GRADFLOW_RETURN_IF_ERROR(CheckRows(tensor.shape(), shape));
    int64_t num_elements = -1;
    if (ctx.num_inputs() > 3) {
      GRADFLOW_ASSIGN_OR_RETURN(num_elements, ctx.ScalarInt(3, "num_elements"));
      if (num_elements < -1) {
        return errors::InvalidArgument("num_elements must be at least -1, but is ", num_elements);
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(TensorList list,
                              TensorList::Make(dtype_, shape, -1, ctx.allocator()));
    GRADFLOW_RETURN_IF_ERROR(list.Resize(std::max<int64_t>(num_elements, 0)));
    GRADFLOW_RETURN_IF_ERROR(ScatterRows(ctx, tensor, ctx.input(1), num_elements, &list));
    return SetListOutput(ctx, std::move(list));
  }
};

absl::Status ScatterIntoShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  c.set_output(0, TensorShape());
  return CheckCounts(c.Dim(1, 0), c.Dim(2, 0));
}

class ScatterIntoKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckTensor(ctx.input(1), dtype_));
    GRADFLOW_RETURN_IF_ERROR(CheckIndices(ctx, 2));
    GRADFLOW_ASSIGN_OR_RETURN(TensorList* const list, ListOutput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    GRADFLOW_RETURN_IF_ERROR(CheckRows(ctx.input(1).shape(), list->element_shape()));
    return ScatterRows(ctx, ctx.input(1), ctx.input(2), -1, list);
  }
};

// ---- TensorListSplit, TensorListConcat ----

absl::Status CheckSplitShape(const PartialTensorShape& tensor, const PartialTensorShape& element) {
  if (element.unknown_rank()) return absl::OkStatus();
  if (element.dims() == 0) {
    return errors::InvalidArgument("element_shape must have rank at least 1, but is a scalar");
  }
  if (tensor.unknown_rank() || RowShape(element).IsCompatibleWith(RowShape(tensor))) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("tensor, which has shape ", tensor.DebugString(),
                                 ", cannot be split into elements of shape ",
                                 element.DebugString());
}

absl::Status SplitShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape element, ElementShape(c, 1));
  c.set_output(0, TensorShape());
  return CheckSplitShape(c.input(0), element);
}

class ListSplitKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& tensor = ctx.input(0);
    const Tensor& lengths = ctx.input(2);
    GRADFLOW_RETURN_IF_ERROR(CheckTensor(tensor, dtype_));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 1, "element_shape"));
    GRADFLOW_RETURN_IF_ERROR(CheckSplitShape(tensor.shape(), shape));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "lengths"));
    if (lengths.dtype() != DT_INT64) {
      return errors::InvalidArgument("lengths must be of type int64, but are ",
                                     DataTypeString(lengths.dtype()));
    }
    const absl::Span<const int64_t> length = lengths.span<int64_t>();
    int64_t left = tensor.dim_size(0);
    for (size_t i = 0; i < length.size(); ++i) {
      if (length[i] < 0 || length[i] > left) {
        return errors::InvalidArgument("lengths[", i, "] is ", length[i], ", expected 0 to ", left,
                                       ", the number of rows that are left");
      }
      left -= length[i];
    }
    if (left > 0) {
      return errors::InvalidArgument("lengths must add up to ", tensor.dim_size(0),
                                     ", the number of rows of tensor, but add up to ",
                                     tensor.dim_size(0) - left);
    }
    GRADFLOW_ASSIGN_OR_RETURN(TensorList list,
                              TensorList::Make(dtype_, shape, -1, ctx.allocator()));
    GRADFLOW_RETURN_IF_ERROR(list.Resize(lengths.NumElements()));
    int64_t start = 0;
    for (int64_t i = 0; i < list.size() && !ctx.ShouldStop(); ++i) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor rows,
                                TakeRows(ctx, tensor, start, start + length[i], /*squeeze=*/false));
      GRADFLOW_RETURN_IF_ERROR(list.Set(i, std::move(rows)));
      start += length[i];
    }
    return SetListOutput(ctx, std::move(list));
  }
};

// Sets the shapes of the concatenation of elements of shape `element` and of their lengths.
absl::Status SetConcatShapes(ShapeContext& c, const PartialTensorShape& element) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  c.set_output(1, PartialTensorShape({-1}));
  if (element.unknown_rank()) return absl::OkStatus();
  if (element.dims() == 0) {
    return errors::InvalidArgument("element_shape must have rank at least 1, but is a scalar");
  }
  PartialTensorShape joined = element;
  joined.set_dim(0, -1);
  c.set_output(0, std::move(joined));
  return absl::OkStatus();
}

absl::Status ConcatShape(ShapeContext& c) {
  PartialTensorShape element;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("element_shape", &element));
  return SetConcatShapes(c, element);
}

absl::Status ConcatV2Shape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape element, ElementShape(c, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  return SetConcatShapes(c, element);
}

// Concatenates the elements of `list`. An element that is not set has the number of rows in
// `shape`, or leading_dims[i] rows if `shape` does not state the number.
absl::Status ConcatElements(KernelContext& ctx, const TensorList& list, PartialTensorShape shape,
                            absl::Span<const int64_t> leading_dims) {
  GRADFLOW_ASSIGN_OR_RETURN(shape, MergeElementShape(list, shape));
  if (shape.dims() == 0) {
    return errors::InvalidArgument(
        "elements must have rank at least 1 to be concatenated, but are "
        "scalars");
  }
  const int64_t rows = shape.unknown_rank() ? -1 : shape.dim_size(0);
  PartialTensorShape row = RowShape(shape);
  // The number of rows of all elements that are set; -1 if they differ or there are none.
  int64_t common_rows = -1;
  bool any_set = false;
  double string_bytes = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    if (!list.IsSet(i)) continue;
    const Tensor& element = list.elements()[i];
    string_bytes += static_cast<double>(element.StringBytes());
    if (element.dims() == 0) {
      return errors::InvalidArgument("element ", i,
                                     " of the list must have rank at least 1 to be "
                                     "concatenated, but is a scalar");
    }
    const PartialTensorShape here = RowShape(element.shape());
    if (!row.IsCompatibleWith(here) || (rows >= 0 && rows != element.dim_size(0))) {
      PartialTensorShape expected;
      GRADFLOW_RETURN_IF_ERROR(PartialTensorShape({rows}).ConcatenateWithStatus(row, &expected));
      return errors::InvalidArgument("element ", i, " of the list has shape ",
                                     element.shape().DebugString(), ", expected ",
                                     expected.DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(row, row.MergeWith(here));
    common_rows = !any_set || common_rows == element.dim_size(0) ? element.dim_size(0) : -1;
    any_set = true;
  }
  if (!row.IsFullyDefined()) {
    return errors::InvalidArgument(
        "the shape of the rows of elements is not fully known: ", row.DebugString(), ", and ",
        list.size() == 0 ? "there are none" : "none of them is set");
  }
  Tensor* lengths = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {list.size()}, &lengths));
  const absl::Span<int64_t> length = lengths->span<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    if (list.IsSet(i)) {
      length[i] = list.elements()[i].dim_size(0);
    } else if (rows >= 0) {
      length[i] = rows;
    } else if (i < static_cast<int64_t>(leading_dims.size())) {
      length[i] = leading_dims[i];
    } else {
      length[i] = common_rows;
    }
    if (length[i] < 0) {
      return errors::InvalidArgument("the number of rows of element ", i,
                                     ", which is not set, is not known: leading_dims has ",
                                     leading_dims.size(), " elements");
    }
    if (__builtin_add_overflow(total, length[i], &total)) {
      return errors::InvalidArgument("the elements have more than 2^63 - 1 rows");
    }
  }
  DimVector dims = {total};
  dims.insert(dims.end(), row.dim_sizes().begin(), row.dim_sizes().end());
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape joined, TensorShape::Make(dims));
  ctx.ExpectStringBytes(string_bytes);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, joined, &output));
  if (output->NumElements() == 0) return absl::OkStatus();
  const int64_t width = output->NumElements() / total;
  // Where each element starts.
  Tensor starts;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {list.size()}, &starts));
  const absl::Span<int64_t> start = starts.span<int64_t>();
  int64_t next = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    start[i] = next;
    next += length[i] * width;
  }
  const double cost = 10 + static_cast<double>(output->NumElements()) /
                               static_cast<double>(list.size()) * CopyNanoseconds(output->dtype());
  ParallelFor(ctx, list.size(), BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (list.IsSet(i)) {
        CopyElements(list.elements()[i], 0, output, start[i], length[i] * width);
      } else {
        ClearElements(output, start[i], length[i] * width);
      }
    }
  });
  return absl::OkStatus();
}

class ListConcatKernel final : public ListKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("element_shape", &shape_));
    return ListKernel::Init(construction);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorList* const list, ListInput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    return ConcatElements(ctx, *list, shape_, {});
  }

 private:
  PartialTensorShape shape_;
};

class ConcatV2Kernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorList* const list, ListInput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 1, "element_shape"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "leading_dims"));
    if (ctx.input(2).dtype() != DT_INT64) {
      return errors::InvalidArgument("leading_dims must be of type int64, but are ",
                                     DataTypeString(ctx.input(2).dtype()));
    }
    return ConcatElements(ctx, *list, shape, ctx.input(2).span<int64_t>());
  }
};

template <typename Kernel>
void ForAllTypes(Registry& registry, const char* op) {
  registry.Kernel(op, MakeKernel<Kernel>).Types("element_dtype", AllDataTypes());
}

constexpr char kTypeDoc[] = R"(
element_dtype: The type of the elements.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("TensorListFromTensor")
      .Group("list_ops")
      .Input("tensor: element_dtype")
      .Input("element_shape: shape_type")
      .Output("output_handle: variant")
      .Attr("element_dtype: type")
      .Attr("shape_type: {int32, int64}")
      .Shape([](ShapeContext& c) { return FromTensorShape(c, 1); })
      .Doc(absl::StrCat(R"(Returns the list of the rows of a tensor.

tensor: A tensor of at least one dimension.
element_shape: The shape of the elements, as in EmptyTensorList.
output_handle: The list. Element i is `tensor[i]`.
shape_type: The type of `element_shape`.)",
                        kTypeDoc));
  ForAllTypes<FromTensorKernel>(registry, "TensorListFromTensor");

  registry.Op("TensorListStack")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("element_shape: int32")
      .Output("tensor: element_dtype")
      .Attr("element_dtype: type")
      .Attr("num_elements: int = -1")
      .Shape(StackShape)
      .Doc(absl::StrCat(
          R"(Stacks all elements of a list, which have one shape, along a new first dimension.

input_handle: The list.
element_shape: The shape of the elements, as in EmptyTensorList. If it is not fully known, at least
  one element must be set.
tensor: The elements as rows; zeros for those that are not set.
num_elements: The number of elements that the list must have; -1 for any number.)",
          kTypeDoc));
  ForAllTypes<ListStackKernel>(registry, "TensorListStack");

  registry.Op("TensorListGather")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("indices: int32")
      .Input("element_shape: int32")
      .Output("values: element_dtype")
      .Attr("element_dtype: type")
      .Shape(GatherShape)
      .Doc(absl::StrCat(
          R"(Stacks elements of a list, which have one shape, along a new first dimension.

input_handle: The list.
indices: The indices of the elements, a vector.
element_shape: The shape of the elements, as in TensorListStack.
values: Row i is element `indices[i]`; zeros if it is not set.)",
          kTypeDoc));
  ForAllTypes<ListGatherKernel>(registry, "TensorListGather");

  registry.Op("TensorListScatter")
      .Group("list_ops")
      .Input("tensor: element_dtype")
      .Input("indices: int32")
      .Input("element_shape: shape_type")
      .Output("output_handle: variant")
      .Attr("element_dtype: type")
      .Attr("shape_type: {int32, int64}")
      .Shape(ScatterShape)
      .Doc(absl::StrCat(R"(Returns a list that has the rows of a tensor at given indices.

tensor: A tensor of at least one dimension.
indices: The index of each row in the list, a vector. If an index is there several times, the last
  counts.
element_shape: The shape of the elements, as in EmptyTensorList.
output_handle: The list, up to the largest index. Elements that no index names are not set.
shape_type: The type of `element_shape`.)",
                        kTypeDoc));
  ForAllTypes<ListScatterKernel>(registry, "TensorListScatter");

  registry.Op("TensorListScatterV2")
      .Group("list_ops")
      .Input("tensor: element_dtype")
      .Input("indices: int32")
      .Input("element_shape: shape_type")
      .Input("num_elements: int32")
      .Output("output_handle: variant")
      .Attr("element_dtype: type")
      .Attr("shape_type: {int32, int64}")
      .Shape(ScatterShape)
      .Doc(absl::StrCat(R"(Returns a list that has the rows of a tensor at given indices.

tensor: A tensor of at least one dimension.
indices: The index of each row in the list, a vector. If an index is there several times, the last
  counts.
element_shape: The shape of the elements, as in EmptyTensorList.
num_elements: A scalar: the number of elements of the list, or -1 for a list up to the largest
  index.
output_handle: The list. Elements that no index names are not set.
shape_type: The type of `element_shape`.)",
                        kTypeDoc));
  ForAllTypes<ListScatterKernel>(registry, "TensorListScatterV2");

  registry.Op("TensorListScatterIntoExistingList")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("tensor: element_dtype")
      .Input("indices: int32")
      .Output("output_handle: variant")
      .Attr("element_dtype: type")
      .Shape(ScatterIntoShape)
      .Doc(absl::StrCat(R"(Returns a list with rows of a tensor at given indices.

input_handle: The list.
tensor: A tensor of at least one dimension.
indices: The index of each row in the list, a vector. If an index is there several times, the last
  counts. Indices past the end make the list longer.
output_handle: The list with the rows as elements.)",
                        kTypeDoc));
  ForAllTypes<ScatterIntoKernel>(registry, "TensorListScatterIntoExistingList");

  registry.Op("TensorListSplit")
      .Group("list_ops")
      .Input("tensor: element_dtype")
      .Input("element_shape: shape_type")
      .Input("lengths: int64")
      .Output("output_handle: variant")
      .Attr("element_dtype: type")
      .Attr("shape_type: {int32, int64}")
      .Shape(SplitShape)
      .Doc(absl::StrCat(R"(Splits a tensor along its first dimension into the elements of a list.

tensor: A tensor of at least one dimension.
element_shape: The shape of the elements, as in EmptyTensorList.
lengths: The number of rows of each element, a vector. They add up to the rows of `tensor`.
output_handle: The list.
shape_type: The type of `element_shape`.)",
                        kTypeDoc));
  ForAllTypes<ListSplitKernel>(registry, "TensorListSplit");

  registry.Op("TensorListConcat")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Output("tensor: element_dtype")
      .Output("lengths: int64")
      .Attr("element_dtype: type")
      .Attr("element_shape: shape = { unknown_rank: true }")
      .Shape(ConcatShape)
      .Doc(absl::StrCat(R"(Concatenates the elements of a list along their first dimension.

input_handle: The list.
tensor: The rows of all elements. Elements that are not set are zeros.
lengths: The number of rows of each element.
element_shape: The shape of the elements, or what is known of it.)",
                        kTypeDoc));
  ForAllTypes<ListConcatKernel>(registry, "TensorListConcat");

  registry.Op("TensorListConcatV2")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("element_shape: shape_type")
      .Input("leading_dims: int64")
      .Output("tensor: element_dtype")
      .Output("lengths: int64")
      .Attr("element_dtype: type")
      .Attr("shape_type: {int32, int64}")
      .Shape(ConcatV2Shape)
      .Doc(absl::StrCat(R"(Concatenates the elements of a list along their first dimension.

input_handle: The list.
element_shape: The shape of the elements, as in EmptyTensorList.
leading_dims: The number of rows of each element that is not set, a vector, unless `element_shape`
  states it. May be shorter than the list: other elements have as many rows as those that are set.
tensor: The rows of all elements. Elements that are not set are zeros.
lengths: The number of rows of each element.
shape_type: The type of `element_shape`.)",
                        kTypeDoc));
  ForAllTypes<ConcatV2Kernel>(registry, "TensorListConcatV2");
}

}  // namespace gradflow::tensor_list_stack
