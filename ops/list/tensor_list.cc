// Lists of tensors: ops that make a list, and read, add, replace and remove single elements.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/list/list_inputs.h"

namespace gradflow::tensor_list {
namespace {

// Makes output 0 a scalar, a list. Inputs [1, n) have the given ranks.
absl::Status ListShape(ShapeContext& c, std::initializer_list<int> scalars) {
  for (const int i : scalars) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

absl::Status IndexOutOfRange(absl::string_view what, int64_t index, const TensorList& list) {
  return errors::InvalidArgument(what, " is ", index, ", but the list has ", list.size(),
                                 list.size() == 1 ? " element" : " elements");
}

absl::Status CheckIndex(int64_t index, const TensorList& list) {
  if (index >= 0 && index < list.size()) return absl::OkStatus();
  return IndexOutOfRange("index", index, list);
}

// ---- EmptyTensorList, TensorListReserve ----

absl::Status MakeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(ElementShape(c, 0).status());
  return ListShape(c, {1});
}

class EmptyKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 0, "element_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t max, ctx.ScalarInt(1, "max_num_elements"));
    GRADFLOW_ASSIGN_OR_RETURN(
        TensorList list,
        TensorList::Make(dtype_, shape, std::max<int64_t>(max, -1), ctx.allocator()));
    return SetListOutput(ctx, std::move(list));
  }
};

class ReserveKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 0, "element_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t size, ctx.ScalarInt(1, "num_elements"));
    if (size < 0) {
      return errors::InvalidArgument("num_elements must not be negative, but is ", size);
    }
    GRADFLOW_ASSIGN_OR_RETURN(TensorList list,
                              TensorList::Make(dtype_, shape, -1, ctx.allocator()));
    GRADFLOW_RETURN_IF_ERROR(list.Resize(size));
    return SetListOutput(ctx, std::move(list));
  }
};

// ---- TensorListPushBack, TensorListPushBackBatch, TensorListPopBack ----

absl::Status PushBackShape(ShapeContext& c) { return ListShape(c, {0}); }

class PushBackKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(TensorList* const list, ListOutput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    return list->PushBack(ctx.input(1));
  }
};

absl::Status PushBackBatchShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(1, 1));
  const int64_t lists = c.Dim(0, 0);
  const int64_t rows = c.Dim(1, 0);
  if (lists >= 0 && rows >= 0 && lists != rows) {
    return errors::InvalidArgument("there are ", lists, " lists, but tensor has ", rows, " rows");
  }
  c.set_output(0, PartialTensorShape({std::max(lists, rows)}));
  return absl::OkStatus();
}

class PushBackBatchKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "input_handles"));
    const int64_t count = ctx.input(0).NumElements();
    const Tensor& rows = ctx.input(1);
    if (rows.dims() == 0 || rows.dim_size(0) != count || rows.dtype() != dtype_) {
      return errors::InvalidArgument("tensor must have type ", DataTypeString(dtype_), " and ",
                                     count, " rows, one for each list, but has type ",
                                     DataTypeString(rows.dtype()), " and shape ",
                                     rows.shape().DebugString());
    }
    if (ctx.input(0).dtype() != DT_VARIANT) {
      return errors::InvalidArgument("input_handles must be of type variant, but are ",
                                     DataTypeString(ctx.input(0).dtype()));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &output));
    for (int64_t i = 0; i < count && !ctx.ShouldStop(); ++i) {
      Variant& variant = output->span<Variant>()[i];
      if (output->raw_data() != ctx.input(0).raw_data()) variant = ctx.input(0).span<Variant>()[i];
      auto* const list = variant.get<TensorList>();
      const auto fault = [i](const absl::Status& status) {
        return errors::Prefix(absl::StrCat("input_handles[", i, "]: "), status);
      };
      if (list == nullptr) {
        return errors::InvalidArgument("input_handles[", i,
                                       "] must hold a list of tensors, but does not");
      }
      GRADFLOW_ASSIGN_OR_RETURN(Tensor row, TakeRows(ctx, rows, i, i + 1, /*squeeze=*/true));
      if (absl::Status status = list->PushBack(std::move(row)); !status.ok()) return fault(status);
    }
    return absl::OkStatus();
  }
};

absl::Status PopBackShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, ElementShape(c, 1));
  c.set_output(1, std::move(shape));
  return ListShape(c, {0});
}

// Returns element i of the list, or zeros if it is not set. `shape` is input element_shape.
absl::StatusOr<Tensor> ElementOrZeros(KernelContext& ctx, const TensorList& list, int64_t i,
                                      const PartialTensorShape& shape) {
  if (!list.IsSet(i)) {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape merged, MergeElementShape(list, shape));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape zeros,
                              UnsetShape(list, merged, "an element that is not set"));
    return MakeZeros(ctx, list.element_dtype(), zeros);
  }
  const Tensor& element = list.elements()[i];
  if (!shape.IsCompatibleWith(element.shape())) {
    return errors::InvalidArgument(
        "element ", i, " of the list has shape ", element.shape().DebugString(),
        ", which is not compatible with element_shape ", shape.DebugString());
  }
  return element;
}

class PopBackKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 1, "element_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(TensorList* const list, ListOutput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    if (list->size() == 0) {
      return errors::InvalidArgument("the list is empty, so no element can be removed");
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor last, ElementOrZeros(ctx, *list, list->size() - 1, shape));
    ctx.set_output(1, std::move(last));
    return list->PopBack();
  }
};

// ---- TensorListGetItem, TensorListSetItem ----

absl::Status GetItemShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, ElementShape(c, 2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class GetItemKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorList* const list, ListInput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t index, ctx.ScalarInt(1, "index"));
    GRADFLOW_RETURN_IF_ERROR(CheckIndex(index, *list));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              ElementShape(ctx, 2, "element_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(Tensor item, ElementOrZeros(ctx, *list, index, shape));
    ctx.set_output(0, std::move(item));
    return absl::OkStatus();
  }
};

absl::Status SetItemShape(ShapeContext& c) { return ListShape(c, {0, 1}); }

class SetItemKernel final : public ListKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("resize_if_index_out_of_bounds", &resizes_));
    return ListKernel::Init(construction);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t index, ctx.ScalarInt(1, "index"));
    GRADFLOW_ASSIGN_OR_RETURN(TensorList* const list, ListOutput(ctx, 0, "input_handle"));
    GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
    if (!resizes_ || index < 0) GRADFLOW_RETURN_IF_ERROR(CheckIndex(index, *list));
    const Tensor& item = ctx.input(2);
    GRADFLOW_RETURN_IF_ERROR(list->CheckElement(item.dtype(), item.shape()));
    GRADFLOW_RETURN_IF_ERROR(list->Resize(std::max(list->size(), index + 1)));
    return list->Set(index, item);
  }

 private:
  bool resizes_ = false;
};

// ---- TensorListLength, TensorListElementShape, TensorListResize ----

absl::Status LengthShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

absl::Status Length(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorList* const list, ListInput(ctx, 0, "input_handle"));
  if (list->size() != static_cast<int32_t>(list->size())) {
    return errors::InvalidArgument("the length of the list, ", list->size(),
                                   ", does not fit int32");
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  output->span<int32_t>()[0] = static_cast<int32_t>(list->size());
  return absl::OkStatus();
}

absl::Status ElementShapeShape(ShapeContext& c) { return c.CheckRank(0, 0); }

absl::Status ComputeElementShape(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorList* const list, ListInput(ctx, 0, "input_handle"));
  const PartialTensorShape& shape = list->element_shape();
  Tensor* output = nullptr;
  if (shape.unknown_rank()) {
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
    WriteIndex(output, 0, -1);
    return absl::OkStatus();
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {shape.dims()}, &output));
  for (int d = 0; d < shape.dims(); ++d) {
    if (output->dtype() == DT_INT32 &&
        shape.dim_size(d) != static_cast<int32_t>(shape.dim_size(d))) {
      return errors::InvalidArgument("dimension ", d, " of the shape of elements, ",
                                     shape.DebugString(), ", does not fit int32");
    }
    WriteIndex(output, d, shape.dim_size(d));
  }
  return absl::OkStatus();
}

absl::Status ResizeShape(ShapeContext& c) { return ListShape(c, {0, 1}); }

absl::Status Resize(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t size, ctx.ScalarInt(1, "size"));
  if (size < 0) return errors::InvalidArgument("size must not be negative, but is ", size);
  GRADFLOW_ASSIGN_OR_RETURN(TensorList* const list, ListOutput(ctx, 0, "input_handle"));
  return list->Resize(size);
}

// ---- TensorListConcatLists ----

absl::Status ConcatListsShape(ShapeContext& c) { return SameShape(c); }

class ConcatListsKernel final : public ListKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "input_a", 1, "input_b"));
    const absl::Span<const Variant> b = ctx.input(1).span<Variant>();
    const int64_t count = ctx.input(0).NumElements();
    if (ctx.input(0).dtype() != DT_VARIANT || ctx.input(1).dtype() != DT_VARIANT) {
      return errors::InvalidArgument("input_a and input_b must be of type variant, but are ",
                                     DataTypeString(ctx.input(0).dtype()), " and ",
                                     DataTypeString(ctx.input(1).dtype()));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &output));
    for (int64_t i = 0; i < count && !ctx.ShouldStop(); ++i) {
      Variant& variant = output->span<Variant>()[i];
      if (output->raw_data() != ctx.input(0).raw_data()) variant = ctx.input(0).span<Variant>()[i];
      auto* const list = variant.get<TensorList>();
      const auto* const more = b[i].get<TensorList>();
      if (list == nullptr || more == nullptr) {
        return errors::InvalidArgument("element ", i, " of ",
                                       list == nullptr ? "input_a" : "input_b",
                                       " must hold a list of tensors, but does not");
      }
      GRADFLOW_RETURN_IF_ERROR(CheckElementType(*list, dtype_));
      GRADFLOW_RETURN_IF_ERROR(CheckElementType(*more, dtype_));
      if (list->element_shape() != more->element_shape()) {
        return errors::InvalidArgument("elements ", i,
                                       " of input_a and input_b are lists of "
                                       "elements of different shapes, ",
                                       list->element_shape().DebugString(), " and ",
                                       more->element_shape().DebugString());
      }
      // A copy, as both may be one list.
      const TensorList added = *more;
      const int64_t start = list->size();
      GRADFLOW_RETURN_IF_ERROR(list->Resize(start + added.size()));
      for (int64_t k = 0; k < added.size(); ++k) {
        if (added.IsSet(k)) GRADFLOW_RETURN_IF_ERROR(list->Set(start + k, added.elements()[k]));
      }
    }
    return absl::OkStatus();
  }
};

constexpr char kShapeAttrs[] = R"(
element_dtype: The type of the elements.)";

template <typename Kernel>
void ForAllTypes(Registry& registry, const char* op) {
  registry.Kernel(op, MakeKernel<Kernel>).Types("element_dtype", AllDataTypes());
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("EmptyTensorList")
      .Group("list_ops")
      .Input("element_shape: shape_type")
      .Input("max_num_elements: int32")
      .Output("handle: variant")
      .Attr("element_dtype: type")
      .Attr("shape_type: {int32, int64}")
      .Shape(MakeShape)
      .Doc(absl::StrCat(R"(Returns an empty list of tensors.

element_shape: The shape of the elements, a vector. Dimensions of -1 are unknown; the scalar -1
  stands for an unknown rank.
max_num_elements: A scalar: the most elements that may be pushed, or -1 for any number.
handle: The list.
shape_type: The type of `element_shape`.)",
                        kShapeAttrs));
  ForAllTypes<EmptyKernel>(registry, "EmptyTensorList");

  registry.Op("TensorListReserve")
      .Group("list_ops")
      .Input("element_shape: shape_type")
      .Input("num_elements: int32")
      .Output("handle: variant")
      .Attr("element_dtype: type")
      .Attr("shape_type: {int32, int64}")
      .Shape(MakeShape)
      .Doc(absl::StrCat(R"(Returns a list of tensors that are not set.

Elements that are not set read as zeros.

element_shape: The shape of the elements, as in EmptyTensorList.
num_elements: A scalar: the number of elements.
handle: The list.
shape_type: The type of `element_shape`.)",
                        kShapeAttrs));
  ForAllTypes<ReserveKernel>(registry, "TensorListReserve");

  registry.Op("TensorListPushBack")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("tensor: element_dtype")
      .Output("output_handle: variant")
      .Attr("element_dtype: type")
      .Shape(PushBackShape)
      .Doc(absl::StrCat(R"(Returns a list with one more element.

Takes constant time, on average, if nothing else reads the list.

input_handle: The list.
tensor: The element. Its shape must be compatible with the shape of the list's elements.
output_handle: The list with `tensor` at its end.)",
                        kShapeAttrs));
  ForAllTypes<PushBackKernel>(registry, "TensorListPushBack");

  registry.Op("TensorListPushBackBatch")
      .Group("list_ops")
      .Input("input_handles: variant")
      .Input("tensor: element_dtype")
      .Output("output_handles: variant")
      .Attr("element_dtype: type")
      .Shape(PushBackBatchShape)
      .Doc(absl::StrCat(R"(Adds a row of a tensor to each of several lists.

input_handles: The lists, a vector.
tensor: The elements: row i is the new element of list i.
output_handles: The lists, each with one more element at its end.)",
                        kShapeAttrs));
  ForAllTypes<PushBackBatchKernel>(registry, "TensorListPushBackBatch");

  registry.Op("TensorListPopBack")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("element_shape: int32")
      .Output("output_handle: variant")
      .Output("tensor: element_dtype")
      .Attr("element_dtype: type")
      .Shape(PopBackShape)
      .Doc(absl::StrCat(R"(Removes the last element of a list, and returns both.

input_handle: The list, which must not be empty.
element_shape: The shape of the element, as in EmptyTensorList. It matters if the element is not
  set.
output_handle: The other elements.
tensor: The last element; zeros if it is not set.)",
                        kShapeAttrs));
  ForAllTypes<PopBackKernel>(registry, "TensorListPopBack");

  registry.Op("TensorListGetItem")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("index: int32")
      .Input("element_shape: Tshape")
      .Output("item: element_dtype")
      .Attr("element_dtype: type")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(GetItemShape)
      .Doc(absl::StrCat(R"(Returns an element of a list.

input_handle: The list.
index: A scalar: the index of the element.
element_shape: The shape of the element, as in EmptyTensorList. It matters if the element is not
  set.
item: The element; zeros if it is not set. If neither the list nor `element_shape` states the whole
  shape of the zeros, the elements that are set give the shape.
Tshape: The type of `element_shape`.)",
                        kShapeAttrs));
  ForAllTypes<GetItemKernel>(registry, "TensorListGetItem");

  registry.Op("TensorListSetItem")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("index: int32")
      .Input("item: element_dtype")
      .Output("output_handle: variant")
      .Attr("element_dtype: type")
      .Attr("resize_if_index_out_of_bounds: bool = false")
      .Shape(SetItemShape)
      .Doc(absl::StrCat(R"(Returns a list with another element at an index.

Takes constant time if nothing else reads the list.

input_handle: The list.
index: A scalar: the index of the element.
item: The new element.
output_handle: The list with `item` at `index`.
resize_if_index_out_of_bounds: Adds elements that are not set if `index` is past the end of the
  list. Otherwise this is an error.)",
                        kShapeAttrs));
  ForAllTypes<SetItemKernel>(registry, "TensorListSetItem");

  registry.Op("TensorListLength")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Output("length: int32")
      .Shape(LengthShape)
      .Doc(R"(Returns the number of elements of a list.

input_handle: The list.
length: The number, a scalar.)");
  registry.Kernel("TensorListLength", MakeFunctionKernel<Length, /*Cheap=*/true>);

  registry.Op("TensorListElementShape")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Output("element_shape: shape_type")
      .Attr("shape_type: {int32, int64}")
      .Shape(ElementShapeShape)
      .Doc(R"(Returns the shape of the elements of a list.

input_handle: The list.
element_shape: The shape, a vector with -1 for unknown dimensions; the scalar -1 if the rank is
  unknown.
shape_type: The type of `element_shape`.)");
  registry.Kernel("TensorListElementShape",
                  MakeFunctionKernel<ComputeElementShape, /*Cheap=*/true>);

  registry.Op("TensorListResize")
      .Group("list_ops")
      .Input("input_handle: variant")
      .Input("size: int32")
      .Output("output_handle: variant")
      .Shape(ResizeShape)
      .Doc(R"(Returns a list of another size.

input_handle: The list.
size: A scalar: the new number of elements.
output_handle: The list, with fewer elements, or with more at its end, which are not set.)");
  registry.Kernel("TensorListResize", MakeFunctionKernel<Resize>);

  registry.Op("TensorListConcatLists")
      .Group("list_ops")
      .Input("input_a: variant")
      .Input("input_b: variant")
      .Output("output: variant")
      .Attr("element_dtype: type")
      .Shape(ConcatListsShape)
      .Doc(absl::StrCat(R"(Concatenates lists, for each element of two tensors of lists.

input_a: A list, or several.
input_b: As many lists, whose elements have the same shapes.
output: For each pair of lists, the elements of both.)",
                        kShapeAttrs));
  ForAllTypes<ConcatListsKernel>(registry, "TensorListConcatLists");
}

}  // namespace gradflow::tensor_list
