// Members of shapes for programs written for TensorFlow, with TensorFlow's error texts.
#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/proto/tensor_shape.pb.h"

namespace gradflow {
namespace {

// Returns INVALID_ARGUMENT unless these are the dimensions of a valid shape or, if `partial`, of a
// valid partial shape.
absl::Status CheckSizes(absl::Span<const int64_t> dims, bool partial) {
  const auto shape = [&] { return PartialTensorShape(dims).DebugString(); };
  if (dims.size() > kMaxDims) {
    return errors::InvalidArgument("Shape has ", dims.size(),
                                   " dimensions, which is more than the maximum of ", kMaxDims);
  }
  for (const int64_t dim : dims) {
    if (dim < 0 && !partial) {
      return errors::InvalidArgument("Shape ", shape(), " is not fully defined");
    }
    if (dim < -1) {
      return errors::InvalidArgument("Shape ", shape(),
                                     " has dimensions with values below -1 (where -1 means "
                                     "unknown)");
    }
  }
  if (!PartialTensorShape::Make(dims).ok()) {
    return errors::InvalidArgument("Encountered overflow when multiplying shape ", shape());
  }
  return absl::OkStatus();
}

absl::Status CheckSize(int64_t size, bool partial) {
  if (size >= 0 || (partial && size == -1)) return absl::OkStatus();
  return errors::InvalidArgument("Expected a non-negative size, got ", size);
}

}  // namespace

namespace internal {

template <typename Shape>
constexpr bool kIsPartial = std::is_same_v<Shape, PartialTensorShape>;

template <typename Shape>
absl::Status ShapeInterface<Shape>::Set(absl::Span<const int64_t> dims) {
  GRADFLOW_RETURN_IF_ERROR(CheckSizes(dims, kIsPartial<Shape>));
  auto& shape = static_cast<Shape&>(*this);
  shape.dims_ = Dims(dims);
  if constexpr (!kIsPartial<Shape>) shape.Update();
  return absl::OkStatus();
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::AddDimWithStatus(int64_t size) {
  if (self().unknown_rank()) return absl::OkStatus();
  return InsertDimWithStatus(self().dims(), size);
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::InsertDimWithStatus(int d, int64_t size) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(size, kIsPartial<Shape>));
  if (d < 0) return errors::Internal("The insertion index must be non-negative, got ", d);
  if (d > self().dims()) {
    return errors::Internal("The insertion index must be at most ", self().dims(), " got ", d);
  }
  if (self().dims() >= kMaxDims) {
    return errors::Internal("Shape has ", self().dims(),
                            " dimensions which is the maximum allowed");
  }
  DimVector dims(self().dims_.begin(), self().dims_.end());
  dims.insert(dims.begin() + d, size);
  return Set(dims);
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::SetDimWithStatus(int d, int64_t size) {
  if (d < 0) return errors::InvalidArgument("Index must be non-negative, got ", d);
  if (d >= self().dims()) {
    return errors::InvalidArgument("Index must be less than ", self().dims(), ", got ", d);
  }
  GRADFLOW_RETURN_IF_ERROR(CheckSize(size, kIsPartial<Shape>));
  DimVector dims(self().dims_.begin(), self().dims_.end());
  dims[d] = size;
  return Set(dims);
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::AppendShapeWithStatus(const Shape& shape) {
  if (self().unknown_rank() || shape.unknown_rank()) {
    static_cast<Shape&>(*this) = Shape();
    return absl::OkStatus();
  }
  DimVector dims(self().dims_.begin(), self().dims_.end());
  dims.insert(dims.end(), shape.dims_.begin(), shape.dims_.end());
  return Set(dims);
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::RemoveDimWithStatus(int64_t d) {
  if (d < 0) return errors::Internal("Expected dimension index to be non-negative, got ", d);
  if (d >= self().dims()) {
    return errors::Internal("Expected dimension index to be less than ", self().dims(), ", got ",
                            d);
  }
  return RemoveDimRangeWithStatus(static_cast<int>(d), static_cast<int>(d) + 1);
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::RemoveLastDimsWithStatus(int64_t n) {
  const int dims = self().dims();
  if (n > dims) {
    return errors::Internal("Expected dimension index to be at most ", dims, " got ", n);
  }
  if (n < 0) return errors::Internal("Expected dimension index to be non-negative, got ", n);
  return RemoveDimRangeWithStatus(dims - static_cast<int>(n), dims);
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::RemoveDimRangeWithStatus(int begin, int end) {
  if (self().unknown_rank()) return absl::OkStatus();
  const int64_t rank = self().dims();
  const int64_t first = begin < 0 ? begin + rank + 1 : begin;
  const int64_t last = end < 0 ? end + rank + 1 : end;
  for (const auto& [what, position, given] :
       {std::make_tuple("Start", first, begin), std::make_tuple("End", last, end)}) {
    if (position < 0) {
      return errors::Internal(what, " index must be non-negative, got ", given);
    }
    if (position > rank) {
      return errors::Internal(what, " index must be less than ", rank, ", got ", given);
    }
  }
  if (first >= last) return absl::OkStatus();
  DimVector dims(self().dims_.begin(), self().dims_.end());
  dims.erase(dims.begin() + first, dims.begin() + last);
  return Set(dims);
}

template <typename Shape>
void ShapeInterface<Shape>::RemoveLastDims(int n) {
  if (RemoveLastDimsWithStatus(n).ok()) return;
  if constexpr (!kIsPartial<Shape>) static_cast<Shape&>(*this).RemoveDim(-1);
}

template <typename Shape>
void ShapeInterface<Shape>::RemoveDimRange(int begin, int end) {
  if (RemoveDimRangeWithStatus(begin, end).ok()) return;
  if constexpr (!kIsPartial<Shape>) static_cast<Shape&>(*this).RemoveDim(-1);
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::BuildTensorShapeBase(absl::Span<const int64_t> dims,
                                                         Shape* out) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out, "BuildTensorShapeBase", "out"));
  GRADFLOW_RETURN_IF_ERROR(CheckSizes(dims, kIsPartial<Shape>));
  *out = Shape(dims);
  return absl::OkStatus();
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::BuildTensorShapeBase(const TensorShapeProto& proto,
                                                         Shape* out) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out, "BuildTensorShapeBase", "out"));
  GRADFLOW_RETURN_IF_ERROR(IsValidShape(proto));
  if (kIsPartial<Shape> && proto.unknown_rank()) {
    *out = Shape();
    return absl::OkStatus();
  }
  DimVector dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  *out = Shape(absl::Span<const int64_t>(dims));
  return absl::OkStatus();
}

template <typename Shape>
absl::Status ShapeInterface<Shape>::IsValidShape(const TensorShapeProto& proto) {
  if (kIsPartial<Shape> && proto.unknown_rank()) {
    if (proto.dim().empty()) return absl::OkStatus();
    return errors::InvalidArgument("An unknown shape must not have any dimensions set.");
  }
  // Checked before the vector grows: untrusted input may have any number of dimensions.
  if (proto.dim_size() > kMaxDims) {
    return errors::InvalidArgument("Shape has ", proto.dim_size(),
                                   " dimensions, which is more than the maximum of ", kMaxDims);
  }
  DimVector dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return CheckSizes(dims, kIsPartial<Shape>);
}

template <typename Shape>
TensorShapeProto ShapeInterface<Shape>::AsProto() const {
  TensorShapeProto proto;
  self().AsProto(&proto);
  return proto;
}

template <typename Shape>
std::string ShapeInterface<Shape>::DebugString(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) return "<unknown>";
  std::string text = "[";
  for (const auto& dim : proto.dim()) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "");
    absl::StrAppend(&text, dim.size() < 0 ? "?" : absl::StrCat(dim.size()));
  }
  return text + "]";
}

template class ShapeInterface<TensorShape>;
template class ShapeInterface<PartialTensorShape>;

}  // namespace internal

TensorShape::TensorShape(const TensorShapeProto& proto) {
  if (!BuildTensorShapeBase(proto, this).ok()) RemoveDim(-1);
}

absl::StatusOr<TensorShape> TensorShape::BuildTensorShape(const TensorShapeProto& proto) {
  TensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(BuildTensorShapeBase(proto, &shape));
  return shape;
}

PartialTensorShape::PartialTensorShape(const TensorShapeProto& proto) {
  BuildTensorShapeBase(proto, this).IgnoreError();
}

absl::StatusOr<PartialTensorShape> PartialTensorShape::BuildPartialTensorShape(
    const TensorShapeProto& proto) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(BuildTensorShapeBase(proto, &shape));
  return shape;
}

bool PartialTensorShape::IsValid() const { return !unknown_rank_ && Make(dim_sizes()).ok(); }

absl::Status PartialTensorShape::MergeWith(const PartialTensorShape& other,
                                           PartialTensorShape* result) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(result, "PartialTensorShape::MergeWith", "result"));
  if (result == this) return errors::Internal("Cannot output result to itself");
  absl::StatusOr<PartialTensorShape> merged = MergeWith(other);
  if (!merged.ok()) {
    return errors::InvalidArgument("Incompatible shapes during merge: ", DebugString(), " vs. ",
                                   other.DebugString());
  }
  if (!merged->unknown_rank()) GRADFLOW_RETURN_IF_ERROR(CheckSizes(merged->dim_sizes(), true));
  *result = *std::move(merged);
  return absl::OkStatus();
}

PartialTensorShape PartialTensorShape::Concatenate(int64_t size) const {
  PartialTensorShape result;
  ConcatenateWithStatus(size, &result).IgnoreError();
  return result;
}

PartialTensorShape PartialTensorShape::Concatenate(const PartialTensorShape& shape) const {
  PartialTensorShape result;
  ConcatenateWithStatus(shape, &result).IgnoreError();
  return result;
}

absl::Status PartialTensorShape::ConcatenateWithStatus(int64_t size,
                                                       PartialTensorShape* out) const {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(out, "PartialTensorShape::ConcatenateWithStatus", "out"));
  return ConcatenateWithStatus(PartialTensorShape({std::max<int64_t>(size, -1)}), out);
}

absl::Status PartialTensorShape::ConcatenateWithStatus(const PartialTensorShape& shape,
                                                       PartialTensorShape* out) const {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(out, "PartialTensorShape::ConcatenateWithStatus", "out"));
  PartialTensorShape result = *this;
  GRADFLOW_RETURN_IF_ERROR(result.AppendShapeWithStatus(shape));
  *out = std::move(result);
  return absl::OkStatus();
}

}  // namespace gradflow
