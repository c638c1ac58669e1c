#include "tensorflow/core/util/batch_util.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/types.h"
#include "gradflow/core/variant.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace batch_util {
namespace {

// Copies or moves elements that are not trivially copyable.
template <typename T>
void CopyElements(Tensor& src, int64_t from, int64_t to, int64_t count, bool move, Tensor* dst) {
  const auto source = src.span<T>().subspan(from, count);
  const auto target = dst->span<T>().subspan(to, count);
  if (move) {
    std::move(source.begin(), source.end(), target.begin());
  } else {
    std::copy(source.begin(), source.end(), target.begin());
  }
}

// Copies `count` elements between offsets. REQUIRES: both tensors contain them
absl::Status Copy(Tensor& src, int64_t from, int64_t to, int64_t count, bool may_move,
                  Tensor* dst) {
  if (src.dtype() != dst->dtype()) {
    return errors::InvalidArgument("the tensors have types ", DataTypeString(src.dtype()), " and ",
                                   DataTypeString(dst->dtype()));
  }
  if (count == 0) return absl::OkStatus();
  if (DataTypeCanUseMemcpy(src.dtype())) {
    const int64_t size = DataTypeSize(src.dtype());
    std::memmove(static_cast<char*>(dst->data()) + to * size,
                 static_cast<const char*>(src.data()) + from * size, count * size);
    return absl::OkStatus();
  }
  const bool move = may_move && src.CanBeReused();
  if (src.dtype() == DT_STRING) {
    CopyElements<tstring>(src, from, to, count, move, dst);
    return absl::OkStatus();
  }
  if (src.dtype() == DT_RESOURCE) {
    CopyElements<gradflow::ResourceHandle>(src, from, to, count, move, dst);
    return absl::OkStatus();
  }
  if (src.dtype() == DT_VARIANT) {
    CopyElements<gradflow::Variant>(src, from, to, count, move, dst);
    return absl::OkStatus();
  }
  return errors::Unimplemented("tensors of type ", DataTypeString(src.dtype()),
                               " cannot be copied by rows");
}

// Returns the number of elements in a row. Returns an error if `parent` does not have the rows.
absl::StatusOr<int64_t> RowSize(const Tensor& parent, int64_t first, int64_t count) {
  if (!parent.IsInitialized() || parent.dims() == 0) {
    return errors::InvalidArgument("a tensor of shape ", parent.shape().DebugString(),
                                   " has no rows");
  }
  const int64_t rows = parent.dim_size(0);
  if (first < 0 || count < 0 || count > rows || first > rows - count) {
    return errors::InvalidArgument("rows [", first, ", ", first, " + ", count, ") of ", rows,
                                   " rows");
  }
  return rows == 0 ? 0 : parent.NumElements() / rows;
}

absl::Status CheckElement(const Tensor& element, int64_t size) {
  if (element.IsInitialized() && element.NumElements() == size) return absl::OkStatus();
  return errors::InvalidArgument("the element has shape ", element.shape().DebugString(),
                                 ", but a row has ", size, " elements");
}

absl::Status ToElement(Tensor& parent, Tensor* element, int64_t index, bool may_move) {
  const absl::StatusOr<int64_t> size = RowSize(parent, index, 1);
  TF_RETURN_IF_ERROR(size.status());
  TF_RETURN_IF_ERROR(CheckElement(*element, *size));
  return Copy(parent, index * *size, 0, *size, may_move, element);
}

absl::Status Rows(Tensor& src, int64_t src_offset, int64_t dst_offset, int64_t num_slices,
                  bool may_move, Tensor* dst) {
  const absl::StatusOr<int64_t> size = RowSize(src, src_offset, num_slices);
  TF_RETURN_IF_ERROR(size.status());
  const absl::StatusOr<int64_t> dst_size = RowSize(*dst, dst_offset, num_slices);
  TF_RETURN_IF_ERROR(dst_size.status());
  if (*size != *dst_size) {
    return errors::InvalidArgument("rows of ", *size, " and ", *dst_size, " elements");
  }
  return Copy(src, src_offset * *size, dst_offset * *size, num_slices * *size, may_move, dst);
}

}  // namespace

absl::Status CopyElementToSlice(const Tensor& element, Tensor* parent, int64_t index) {
  const absl::StatusOr<int64_t> size = RowSize(*parent, index, 1);
  TF_RETURN_IF_ERROR(size.status());
  TF_RETURN_IF_ERROR(CheckElement(element, *size));
  Tensor source = element;
  return Copy(source, 0, index * *size, *size, false, parent);
}

absl::Status CopySliceToElement(const Tensor& parent, Tensor* element, int64_t index) {
  Tensor source = parent;
  return ToElement(source, element, index, false);
}

absl::Status MaybeMoveSliceToElement(Tensor* parent, Tensor* element, int64_t index) {
  return ToElement(*parent, element, index, true);
}

absl::Status CopyContiguousSlices(const Tensor& src, int64_t src_offset, int64_t dst_offset,
                                  int64_t num_slices, Tensor* dst) {
  Tensor source = src;
  return Rows(source, src_offset, dst_offset, num_slices, false, dst);
}

absl::Status MaybeMoveContiguousSlices(Tensor& src, int64_t src_offset, int64_t dst_offset,
                                       int64_t num_slices, Tensor* dst) {
  return Rows(src, src_offset, dst_offset, num_slices, true, dst);
}

absl::Status SetElementZero(Tensor* element, const Tensor& padding) {
  if (!padding.IsInitialized() || padding.NumElements() != 1 || !element->IsInitialized()) {
    return errors::InvalidArgument("the padding has shape ", padding.shape().DebugString(),
                                   ", expected one element");
  }
  Tensor source = padding;
  for (int64_t i = 0; i < element->NumElements(); ++i) {
    TF_RETURN_IF_ERROR(Copy(source, 0, i, 1, false, element));
  }
  return absl::OkStatus();
}

}  // namespace batch_util
}  // namespace tensorflow
