// The ops of TensorArray, version 3: TensorArrayV3, TensorArrayWriteV3 and others.
#include "gradflow/ops/data_flow/tensor_array.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/list/list_inputs.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow {

// ---- The array ----

namespace {

// Names are for errors. Each array has a copy.
std::string ShortName(absl::string_view name) { return errors::Printable(name); }

}  // namespace

template <typename... Args>
absl::Status TensorArray::Error(const Args&... args) const {
  return errors::InvalidArgument("TensorArray ", options_.name, ": ", args...);
}

absl::StatusOr<std::shared_ptr<TensorArray>> TensorArray::Make(
    Options options, int64_t size, const std::shared_ptr<Allocator>& allocator) {
  std::shared_ptr<TensorArray> array(new TensorArray(std::move(options), allocator));
  MutexLock lock(&array->mutex_);
  array->element_shape_ = array->options_.element_shape;
  array->may_grow_ = array->options_.dynamic_size;
  GRADFLOW_RETURN_IF_ERROR(array->Charge(0));
  GRADFLOW_RETURN_IF_ERROR(array->Resize(size));
  return array;
}

std::string TensorArray::DebugString() const {
  MutexLock lock(&mutex_);
  return absl::StrCat("TensorArray of ", elements_.size(), " elements");
}

absl::Status TensorArray::CheckOpen() const {
  if (!is_closed_) return absl::OkStatus();
  return errors::InvalidArgument("TensorArray ", options_.name, " has already been closed.");
}

absl::Status TensorArray::Charge(size_t capacity) {
  // Stands for the handle and the places in maps.
  constexpr size_t kOverhead = 256;
  const size_t bytes = sizeof(TensorArray) + kOverhead + options_.name.size() +
                       options_.source.size() + capacity * sizeof(Element);
  return reservation_.Set(static_cast<double>(bytes), "the elements of a TensorArray");
}

absl::Status TensorArray::Resize(int64_t size) {
  const auto count = static_cast<size_t>(size);
  if (count > elements_.capacity()) {
    const size_t capacity = std::max(count, 2 * elements_.size());
    GRADFLOW_RETURN_IF_ERROR(Charge(capacity));
    elements_.reserve(capacity);
  }
  elements_.resize(count);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TensorArray::Size() const {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  return static_cast<int64_t>(elements_.size());
}

absl::StatusOr<int64_t> TensorArray::PackSize() const {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  return options_.is_gradient() ? std::max<int64_t>(split_size_, 0)
                                : static_cast<int64_t>(elements_.size());
}

absl::StatusOr<bool> TensorArray::HasDynamicSize() const {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  return may_grow_;
}

absl::Status TensorArray::SetSplit(int64_t size) {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  if (!options_.is_gradient()) split_size_ = size;
  return absl::OkStatus();
}

absl::StatusOr<PartialTensorShape> TensorArray::MergeElementShape(const PartialTensorShape& shape) {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  if (!element_shape_.IsCompatibleWith(shape)) {
    return Error("the elements have shape ", element_shape_.DebugString(),
                 ", which is not compatible with ", shape.DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(element_shape_, element_shape_.MergeWith(shape));
  return element_shape_;
}

absl::Status TensorArray::Write(KernelContext& ctx, int64_t index, const Tensor& value) {
  // Calls DebugString(), which locks the mutex.
  GRADFLOW_RETURN_IF_ERROR(CheckHandles(value));
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  const auto size = static_cast<int64_t>(elements_.size());
  if (index < 0 || (!may_grow_ && index >= size)) {
    return Error("Tried to write to index ", index,
                 " but array is not resizeable and size is: ", size);
  }
  if (value.dtype() != options_.dtype) {
    return Error("Could not write to TensorArray index ", index, " because the value dtype is ",
                 DataTypeString(value.dtype()), " but TensorArray dtype is ",
                 DataTypeString(options_.dtype), ".");
  }
  if (!element_shape_.IsCompatibleWith(value.shape())) {
    return Error("Could not write to TensorArray index ", index, " because the value shape is ",
                 value.shape().DebugString(),
                 " which is incompatible with the TensorArray's inferred element shape: ",
                 element_shape_.DebugString(), " (consider setting infer_shape=False).");
  }
  if (index >= size) GRADFLOW_RETURN_IF_ERROR(Resize(index + 1));
  if (options_.identical_element_shapes && !element_shape_.IsFullyDefined()) {
    element_shape_ = value.shape();
  }
  Element& element = elements_[static_cast<size_t>(index)];
  if (element.is_read) {
    return Error("Could not write to TensorArray index ", index,
                 " because it has already been read.");
  }
  if (element.is_written && !options_.is_gradient()) {
    return Error("Could not write to TensorArray index ", index,
                 " because it has already been written to.");
  }
  if (element.is_written && element.shape != value.shape()) {
    return Error("Could not aggregate to TensorArray index ", index,
                 " because the existing shape is ", element.shape.DebugString(),
                 " but the new input shape is ", value.shape().DebugString(), ".");
  }
  if (element.tensor.dtype() != DT_INVALID && element.tensor.NumElements() > 0) {
    return Add(ctx, value, &element);
  }
  element.tensor = value;
  element.shape = value.shape();
  element.is_written = true;
  return absl::OkStatus();
}

absl::Status TensorArray::Add(KernelContext& ctx, const Tensor& value, Element* element) {
  const AccumulateFn add = options_.dtype == DT_STRING || options_.dtype == DT_BOOL
                               ? nullptr
                               : FindAccumulation(Accumulation::kAdd, options_.dtype);
  if (add == nullptr) {
    return Error("elements of type ", DataTypeString(options_.dtype), " cannot be added");
  }
  const int64_t count = value.NumElements();
  if (!element->is_sum) {
    Tensor sum;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(options_.dtype, value.shape(), &sum));
    CopyElements(element->tensor, 0, &sum, 0, count);
    element->tensor = std::move(sum);
    element->is_sum = true;
  }
  AccumulateStrided(ctx.run(), add, {count}, value, {0, {1}}, &element->tensor, {0, {1}});
  has_sums_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorArray::Read(KernelContext& ctx, int64_t index) {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  auto size = static_cast<int64_t>(elements_.size());
  if (index < 0 || (index >= size && !options_.is_gradient())) {
    return errors::InvalidArgument("Tried to read from index ", index,
                                   " but array size is: ", size);
  }
  if (index >= size || !elements_[static_cast<size_t>(index)].is_written) {
    TensorShape shape;
    if (options_.is_gradient() && index < size &&
        elements_[static_cast<size_t>(index)].shape.dims() > 0) {
      shape = elements_[static_cast<size_t>(index)].shape;
    } else if (element_shape_.IsFullyDefined()) {
      GRADFLOW_ASSIGN_OR_RETURN(shape, TensorShape::Make(element_shape_.dim_sizes()));
    } else {
      return Error(
          "Could not read from TensorArray index ", index,
          ".  Furthermore, the element shape is not fully defined: ", element_shape_.DebugString(),
          ". The element has not been written, and zeros need a shape.");
    }
    if (index >= size) {
      GRADFLOW_RETURN_IF_ERROR(Resize(index + 1));
    } else {
      size = index;
    }
    for (; size <= index; ++size) {
      elements_[static_cast<size_t>(size)].shape = shape;
      elements_[static_cast<size_t>(size)].is_written = true;
    }
  }
  Element& element = elements_[static_cast<size_t>(index)];
  if (element.is_cleared) {
    return Error("Could not read index ", index,
                 " twice because it was cleared after a previous read (perhaps try setting "
                 "clear_after_read = false?).");
  }
  if (element.tensor.dtype() == DT_INVALID) {
    GRADFLOW_ASSIGN_OR_RETURN(element.tensor, MakeZeros(ctx, options_.dtype, element.shape));
  }
  element.is_read = true;
  if (!options_.clear_after_read) return element.tensor;
  element.is_cleared = true;
  return std::exchange(element.tensor, Tensor(Tensor::Unset()));
}

absl::StatusOr<std::shared_ptr<TensorArray>> TensorArray::Gradient(KernelContext& ctx,
                                                                   const std::string& source,
                                                                   const TensorShape& prefix) {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  may_grow_ = false;
  const auto found = gradients_.find(source);
  if (found != gradients_.end()) return found->second;
  if (has_sums_) {
    return Error(
        "Unable to create a gradients TensorArray. Gradient calculation is impossible "
        "when multiple writes are performed to the same index.");
  }
  // Arrays are destroyed by recursion, and their names grow with the order.
  constexpr int kMaxOrder = 100;
  if (options_.order == kMaxOrder) {
    return Error("Unable to create a gradients TensorArray of an order above ", kMaxOrder, ".");
  }
  Options options = options_;
  options.name = ShortName(absl::StrCat(options_.name, "@", source));
  options.source = source;
  options.dynamic_size = false;
  options.clear_after_read = true;
  ++options.order;
  const auto with_prefix = [&](absl::Span<const int64_t> dims) {
    DimVector all(prefix.dim_sizes().begin(), prefix.dim_sizes().end());
    all.insert(all.end(), dims.begin(), dims.end());
    return all;
  };
  options.element_shape = element_shape_;
  if (!element_shape_.unknown_rank()) {
    GRADFLOW_ASSIGN_OR_RETURN(options.element_shape,
                              PartialTensorShape::Make(with_prefix(element_shape_.dim_sizes())));
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::shared_ptr<TensorArray> gradient,
      Make(std::move(options), static_cast<int64_t>(elements_.size()), ctx.allocator()));
  MutexLock gradient_lock(&gradient->mutex_);
  gradient->split_size_ = split_size_;
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (!elements_[i].is_written) continue;
    Element& element = gradient->elements_[i];
    GRADFLOW_ASSIGN_OR_RETURN(element.shape,
                              TensorShape::Make(with_prefix(elements_[i].shape.dim_sizes())));
    element.is_written = true;
  }
  gradients_.emplace(gradient->options_.source, gradient);
  return gradient;
}

absl::Status TensorArray::Close() {
  MutexLock lock(&mutex_);
  elements_.clear();
  is_closed_ = true;
  return absl::OkStatus();
}

// ---- The ops ----

namespace tensor_array {
namespace {

absl::StatusOr<std::shared_ptr<TensorArray>> ArrayOf(const KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, 0));
  auto array = std::dynamic_pointer_cast<TensorArray>(handle.resource());
  if (array == nullptr) {
    return errors::InvalidArgument("handle must be a TensorArray, but is ", handle.DebugString());
  }
  return array;
}

// Makes a handle of `array` output 0, and the flow, whose value has no meaning, output 1.
absl::Status SetHandle(KernelContext& ctx, const std::shared_ptr<TensorArray>& array) {
  ctx.set_output(0, Tensor(ResourceHandle(array, array->name())));
  Tensor flow(DT_FLOAT, {});
  flow.scalar<float>()() = 0;
  ctx.set_output(1, std::move(flow));
  return absl::OkStatus();
}

// Returns the array of an op whose elements have type `dtype`. `what` is what the op does with the
// type, for errors.
absl::StatusOr<std::shared_ptr<TensorArray>> ArrayOf(const KernelContext& ctx, DataType dtype,
                                                     absl::string_view what) {
  GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<TensorArray> array, ArrayOf(ctx));
  if (array->dtype() == dtype) return array;
  return errors::InvalidArgument("TensorArray dtype is ", DataTypeString(array->dtype()),
                                 " but Op ", what, " dtype ", DataTypeString(dtype), ".");
}

// Returns the array that output 0 comes from.
absl::StatusOr<std::shared_ptr<TensorArray>> ArrayToRead(const KernelContext& ctx) {
  return ArrayOf(ctx, ctx.expected_output_dtype(0), "requested");
}

absl::StatusOr<std::shared_ptr<TensorArray>> ArrayToWrite(const KernelContext& ctx,
                                                          const Tensor& value) {
  return ArrayOf(ctx, value.dtype(), "is trying to write");
}

// ---- TensorArrayV3, TensorArrayGradV3, TensorArrayGradWithShape ----

absl::Status MakeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  c.set_output(0, TensorShape());
  c.set_output(1, TensorShape());
  return absl::OkStatus();
}

absl::Status GradShape(ShapeContext& c) {
  if (c.num_inputs() > 2) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  c.set_output(0, TensorShape());
  c.set_output(1, TensorShape());
  return absl::OkStatus();
}

class MakeKernelOfArray final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("dtype", &options_.dtype));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("element_shape", &options_.element_shape));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("dynamic_size", &options_.dynamic_size));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("clear_after_read", &options_.clear_after_read));
    GRADFLOW_RETURN_IF_ERROR(
        construction.GetAttr("identical_element_shapes", &options_.identical_element_shapes));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("tensor_array_name", &options_.name));
    options_.name = ShortName(options_.name.empty() ? construction.def().name() : options_.name);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t size, ctx.ScalarInt(0, "size"));
    if (size < 0) return errors::InvalidArgument("size must not be negative, but is ", size);
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array,
                              TensorArray::Make(options_, size, ctx.allocator()));
    return SetHandle(ctx, array);
  }

 private:
  TensorArray::Options options_;
};

class TensorArrayGradKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("source", &source_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayOf(ctx));
    TensorShape prefix;
    if (ctx.num_inputs() > 2) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "shape_to_prepend"));
      const auto sizes = ctx.input(2).flat<int32_t>();
      DimVector dims;
      for (int64_t i = 0; i < ctx.input(2).NumElements(); ++i) dims.push_back(sizes(i));
      GRADFLOW_ASSIGN_OR_RETURN(prefix, TensorShape::Make(dims));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> gradient,
                              array->Gradient(ctx, source_, prefix));
    return SetHandle(ctx, gradient);
  }

 private:
  std::string source_;
};

// ---- TensorArrayWriteV3, TensorArrayReadV3 ----

absl::Status WriteShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

absl::Status ComputeWrite(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array,
                            ArrayToWrite(ctx, ctx.input(2)));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t index, ctx.ScalarInt(1, "index"));
  GRADFLOW_RETURN_IF_ERROR(array->Write(ctx, index, ctx.input(2)));
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

absl::Status ReadShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  return c.CheckRank(2, 0);
}

absl::Status ComputeRead(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayToRead(ctx));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t index, ctx.ScalarInt(1, "index"));
  GRADFLOW_ASSIGN_OR_RETURN(Tensor value, array->Read(ctx, index));
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

// ---- TensorArrayGatherV3, TensorArrayConcatV3 ----

absl::Status GatherShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  PartialTensorShape element;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("element_shape", &element));
  PartialTensorShape gathered;
  GRADFLOW_RETURN_IF_ERROR(
      PartialTensorShape({c.Dim(1, 0)}).ConcatenateWithStatus(element, &gathered));
  c.set_output(0, std::move(gathered));
  return absl::OkStatus();
}

absl::Status NoElements(const PartialTensorShape& shape) {
  return errors::InvalidArgument("TensorArray has size zero, but element shape ",
                                 shape.DebugString(),
                                 " is not fully defined. Currently only static shapes are "
                                 "supported when packing zero-size TensorArrays.");
}

class TensorArrayGatherKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("element_shape", &element_shape_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayToRead(ctx));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "indices"));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              array->MergeElementShape(element_shape_));
    const int64_t count = ctx.input(1).NumElements();
    GRADFLOW_ASSIGN_OR_RETURN(
        TensorList list,
        TensorList::Make(array->dtype(), PartialTensorShape(), -1, ctx.allocator()));
    GRADFLOW_RETURN_IF_ERROR(list.Resize(count));
    for (int64_t i = 0; i < count && !ctx.ShouldStop(); ++i) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor element, array->Read(ctx, ctx.input(1).flat<int32_t>()(i)));
      if (i > 0 && element.shape() != list.elements()[0].shape()) {
        return errors::InvalidArgument("TensorArray has inconsistent shapes.  Index 0 has shape: ",
                                       list.elements()[0].shape().DebugString(), " but index ", i,
                                       " has shape: ", element.shape().DebugString());
      }
      GRADFLOW_RETURN_IF_ERROR(list.Set(i, std::move(element)));
    }
    if (count == 0 && !shape.IsFullyDefined()) return NoElements(shape);
    return StackElements(ctx, list, shape, count, [](int64_t i) { return i; });
  }

 private:
  PartialTensorShape element_shape_;
};

absl::Status ConcatShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  PartialTensorShape rest;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("element_shape_except0", &rest));
  PartialTensorShape all;
  GRADFLOW_RETURN_IF_ERROR(PartialTensorShape({-1}).ConcatenateWithStatus(rest, &all));
  c.set_output(0, std::move(all));
  c.set_output(1, PartialTensorShape({-1}));
  return absl::OkStatus();
}

class TensorArrayConcatKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("element_shape_except0", &rest_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayToRead(ctx));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t count, array->PackSize());
    Tensor* lengths = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, TensorShape({count}), &lengths));
    GRADFLOW_ASSIGN_OR_RETURN(
        TensorList list,
        TensorList::Make(array->dtype(), PartialTensorShape(), -1, ctx.allocator()));
    GRADFLOW_RETURN_IF_ERROR(list.Resize(count));
    PartialTensorShape rest = rest_;
    double string_bytes = 0;
    int64_t total = 0;
    for (int64_t i = 0; i < count && !ctx.ShouldStop(); ++i) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor element, array->Read(ctx, i));
      if (element.dims() == 0) {
        return errors::InvalidArgument("Concat saw a scalar shape at index ", i,
                                       " but requires at least vectors.");
      }
      const PartialTensorShape row(element.shape().dim_sizes().subspan(1));
      if (!rest.IsCompatibleWith(row)) {
        return errors::InvalidArgument(
            "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: ",
            rest.DebugString(), " but index ", i,
            " has (excepting dimension 0) shape: ", row.DebugString());
      }
      rest = row;
      string_bytes += static_cast<double>(element.StringBytes());
      lengths->flat<int64_t>()(i) = element.dim_size(0);
      // Cannot overflow: the elements exist.
      total += element.dim_size(0);
      GRADFLOW_RETURN_IF_ERROR(list.Set(i, std::move(element)));
    }
    if (!rest.IsFullyDefined()) return NoElements(rest);
    DimVector dims = {total};
    dims.insert(dims.end(), rest.dim_sizes().begin(), rest.dim_sizes().end());
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    ctx.ExpectStringBytes(string_bytes);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    int64_t at = 0;
    for (const Tensor& element : list.elements()) {
      if (ctx.ShouldStop()) break;
      CopyElements(element, 0, output, at, element.NumElements());
      at += element.NumElements();
    }
    return absl::OkStatus();
  }

 private:
  PartialTensorShape rest_;
};

// ---- TensorArrayScatterV3, TensorArraySplitV3 ----

absl::Status ScatterShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(2, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

absl::Status ComputeScatter(KernelContext& ctx) {
  const Tensor& value = ctx.input(2);
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayToWrite(ctx, value));
  if (value.dims() == 0) {
    return errors::InvalidArgument(
        "Input value for unpack must be at least a vector but received "
        "shape: ",
        value.shape().DebugString());
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "indices"));
  const int64_t count = ctx.input(1).NumElements();
  if (count != value.dim_size(0)) {
    return errors::InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", count,
                                   " vs. ", value.dim_size(0));
  }
  const auto indices = ctx.input(1).flat<int32_t>();
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  GRADFLOW_ASSIGN_OR_RETURN(const bool may_grow, array->HasDynamicSize());
  int64_t largest = -1;
  for (int64_t i = 0; i < count; ++i) largest = std::max<int64_t>(largest, indices(i));
  if (largest >= size && !may_grow) {
    return errors::InvalidArgument("Max scatter index must be < array size (", largest, " vs. ",
                                   size, ")");
  }
  for (int64_t i = 0; i < count && !ctx.ShouldStop(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor row, TakeRows(ctx, value, i, i + 1, /*squeeze=*/true));
    GRADFLOW_RETURN_IF_ERROR(array->Write(ctx, indices(i), row));
  }
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

absl::Status SplitShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

absl::Status ComputeSplit(KernelContext& ctx) {
  const Tensor& value = ctx.input(1);
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayToWrite(ctx, value));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "lengths"));
  if (value.dims() == 0) {
    return errors::InvalidArgument("Expected value to be at least a vector, but received shape: ",
                                   value.shape().DebugString());
  }
  const auto lengths = ctx.input(2).flat<int64_t>();
  const int64_t count = ctx.input(2).NumElements();
  const int64_t rows = value.dim_size(0);
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (lengths(i) < 0 || lengths(i) > rows) {
      return errors::InvalidArgument("lengths[", i, "] must be in [0, ", rows, "], but is ",
                                     lengths(i));
    }
    if (total > std::numeric_limits<int64_t>::max() - lengths(i)) break;
    total += lengths(i);
  }
  if (total != rows) {
    return errors::InvalidArgument(
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is ", total,
        " and value's shape is: ", value.shape().DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(int64_t size, array->Size());
  GRADFLOW_ASSIGN_OR_RETURN(const bool may_grow, array->HasDynamicSize());
  if (may_grow) size = std::max(size, count);
  if (size != count) {
    return errors::InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                                   " vs. ", count,
                                   "), and the TensorArray is not marked as dynamically "
                                   "resizeable");
  }
  GRADFLOW_RETURN_IF_ERROR(array->SetSplit(size));
  int64_t begin = 0;
  for (int64_t i = 0; i < count && !ctx.ShouldStop(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor part,
                              TakeRows(ctx, value, begin, begin + lengths(i), /*squeeze=*/false));
    GRADFLOW_RETURN_IF_ERROR(array->Write(ctx, i, part));
    begin += lengths(i);
  }
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

// ---- TensorArraySizeV3, TensorArrayCloseV3 ----

absl::Status SizeShape(ShapeContext& c) {
  c.set_output(0, TensorShape());
  return c.CheckRank(1, 0);
}

absl::Status ComputeSize(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayOf(ctx));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  Tensor output(DT_INT32, {});
  output.scalar<int32_t>()() = static_cast<int32_t>(size);
  ctx.set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status ComputeClose(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ArrayOf(ctx));
  return array->Close();
}

void RegisterMakers(Registry& registry) {
  registry.Op("TensorArrayV3")
      .Group("data_flow_ops")
      .Input("size: int32")
      .Output("handle: resource")
      .Output("flow: float")
      .Attr("dtype: type")
      .Attr("element_shape: shape = { unknown_rank: true }")
      .Attr("dynamic_size: bool = false")
      .Attr("clear_after_read: bool = true")
      .Attr("identical_element_shapes: bool = false")
      .Attr("tensor_array_name: string = ''")
      .Stateful()
      .Alias("TensorArray")
      .Shape(MakeShape)
      .Doc(R"(Makes an array of tensors.

Each element can be written once. The array lives until the end of the run, unless
`TensorArrayCloseV3` ends it before.

size: A scalar: the number of elements.
handle: The array.
flow: A scalar without meaning. The ops that read or write the array take and return such a scalar,
  which determines their order.
dtype: The type of the elements.
element_shape: A shape that all elements match.
dynamic_size: True if writing an element beyond the end makes the array larger.
clear_after_read: True if reading an element drops it. It can then be read once.
identical_element_shapes: True if all elements have the same shape.
tensor_array_name: The name of the array in errors. The default is the name of the node.)");
  registry.Kernel("TensorArrayV3", MakeKernel<MakeKernelOfArray>).Types("dtype", AllDataTypes());

  constexpr char kGrad[] = R"(
handle: The array.
flow_in: Determines the order.
)";
  constexpr char kGradOut[] = R"(grad_handle: The array of gradients.
flow_out: Determines the order.
source: The name of the computation of gradients: each computation has its own array.)";
  constexpr char kGradDoc[] = R"(

Writing an element of this array again adds to it. Nodes with the same `source` return the same
array. After the first of them, the size of the array is fixed.
)";
  registry.Op("TensorArrayGradV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("flow_in: float")
      .Output("grad_handle: resource")
      .Output("flow_out: float")
      .Attr("source: string")
      .Stateful()
      .Alias("TensorArrayGrad")
      .Shape(GradShape)
      .Doc(absl::StrCat("Makes an array for the gradients of the elements of a TensorArray.",
                        kGradDoc, kGrad, kGradOut));
  registry.Op("TensorArrayGradWithShape")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("flow_in: float")
      .Input("shape_to_prepend: int32")
      .Output("grad_handle: resource")
      .Output("flow_out: float")
      .Attr("source: string")
      .Stateful()
      .Shape(GradShape)
      .Doc(absl::StrCat(
          "Makes an array for several gradients of each element of a TensorArray.", kGradDoc, kGrad,
          R"(shape_to_prepend: The first dimensions of the gradients. The dimensions of the
  elements follow.
)",
          kGradOut));
  for (const char* op : {"TensorArrayGradV3", "TensorArrayGradWithShape"}) {
    registry.Kernel(op, MakeKernel<TensorArrayGradKernel>);
  }
}

void RegisterElements(Registry& registry) {
  registry.Op("TensorArrayWriteV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("index: int32")
      .Input("value: T")
      .Input("flow_in: float")
      .Output("flow_out: float")
      .Attr("T: type")
      .Stateful()
      .Alias("TensorArrayWrite")
      .Shape(WriteShape)
      .Doc(R"(Writes an element of a TensorArray.

handle: The array.
index: A scalar: the index of the element.
value: The element.
flow_in: Determines the order.
flow_out: Determines the order.
T: The type of the element.)");
  registry.Kernel("TensorArrayWriteV3", MakeFunctionKernel<ComputeWrite>)
      .Types("T", AllDataTypes());

  registry.Op("TensorArrayReadV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("index: int32")
      .Input("flow_in: float")
      .Output("value: dtype")
      .Attr("dtype: type")
      .Stateful()
      .Alias("TensorArrayRead")
      .Shape(ReadShape)
      .Doc(R"(Reads an element of a TensorArray.

handle: The array.
index: A scalar: the index of the element.
flow_in: Determines the order.
value: The element; zeros if it has not been written and its shape is known.
dtype: The type of the element.)");
  registry.Kernel("TensorArrayReadV3", MakeFunctionKernel<ComputeRead>)
      .Types("dtype", AllDataTypes());

  registry.Op("TensorArrayGatherV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("indices: int32")
      .Input("flow_in: float")
      .Output("value: dtype")
      .Attr("dtype: type")
      .Attr("element_shape: shape = { unknown_rank: true }")
      .Stateful()
      .Alias("TensorArrayGather")
      .Shape(GatherShape)
      .Doc(R"(Reads several elements of a TensorArray and stacks them.

handle: The array.
indices: A vector: the indices of the elements.
flow_in: Determines the order.
value: The elements, as the rows of a tensor.
dtype: The type of the elements.
element_shape: A shape that the elements match. It must be fully known if there are none.)");
  registry.Kernel("TensorArrayGatherV3", MakeKernel<TensorArrayGatherKernel>)
      .Types("dtype", AllDataTypes());

  registry.Op("TensorArrayScatterV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("indices: int32")
      .Input("value: T")
      .Input("flow_in: float")
      .Output("flow_out: float")
      .Attr("T: type")
      .Stateful()
      .Alias("TensorArrayScatter")
      .Shape(ScatterShape)
      .Doc(R"(Writes the rows of a tensor to elements of a TensorArray.

handle: The array.
indices: A vector: for each row, the index of the element.
value: The rows.
flow_in: Determines the order.
flow_out: Determines the order.
T: The type of the elements.)");
  registry.Kernel("TensorArrayScatterV3", MakeFunctionKernel<ComputeScatter>)
      .Types("T", AllDataTypes());

  registry.Op("TensorArrayConcatV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("flow_in: float")
      .Output("value: dtype")
      .Output("lengths: int64")
      .Attr("dtype: type")
      .Attr("element_shape_except0: shape = { unknown_rank: true }")
      .Stateful()
      .Alias("TensorArrayConcat")
      .Shape(ConcatShape)
      .Doc(R"(Reads all elements of a TensorArray and concatenates them along the first dimension.

handle: The array.
flow_in: Determines the order.
value: The elements.
lengths: A vector: the first dimension of each element.
dtype: The type of the elements.
element_shape_except0: The shape of the elements without the first dimension, if it is known.)");
  registry.Kernel("TensorArrayConcatV3", MakeKernel<TensorArrayConcatKernel>)
      .Types("dtype", AllDataTypes());

  registry.Op("TensorArraySplitV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("value: T")
      .Input("lengths: int64")
      .Input("flow_in: float")
      .Output("flow_out: float")
      .Attr("T: type")
      .Stateful()
      .Alias("TensorArraySplit")
      .Shape(SplitShape)
      .Doc(R"(Splits a tensor along the first dimension into the elements of a TensorArray.

handle: The array.
value: The tensor.
lengths: A vector: the first dimension of each element. The sum is the first dimension of `value`.
flow_in: Determines the order.
flow_out: Determines the order.
T: The type of the elements.)");
  registry.Kernel("TensorArraySplitV3", MakeFunctionKernel<ComputeSplit>)
      .Types("T", AllDataTypes());
}

}  // namespace

void Register(Registry& registry) {
  RegisterMakers(registry);
  RegisterElements(registry);

  registry.Op("TensorArraySizeV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Input("flow_in: float")
      .Output("size: int32")
      .Stateful()
      .Alias("TensorArraySize")
      .Shape(SizeShape)
      .Doc(R"(Returns the number of elements of a TensorArray.

handle: The array.
flow_in: Determines the order.
size: A scalar.)");
  registry.Kernel("TensorArraySizeV3", MakeFunctionKernel<ComputeSize>);

  registry.Op("TensorArrayCloseV3")
      .Group("data_flow_ops")
      .Input("handle: resource")
      .Stateful()
      .Alias("TensorArrayClose")
      .Shape(UnknownShape)
      .Doc(R"(Drops the elements of a TensorArray, which can then not be used any more.

handle: The array.)");
  registry.Kernel("TensorArrayCloseV3", MakeFunctionKernel<ComputeClose>);
}

}  // namespace tensor_array
}  // namespace gradflow
