#include "gradflow/core/tensor_shape.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/tensor_shape.pb.h"

namespace gradflow {
namespace {

std::string DimsString(absl::Span<const int64_t> dims) {
  return absl::StrCat("[",
                      absl::StrJoin(dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      if (dim == -1) {
                                        out->push_back('?');
                                      } else {
                                        absl::StrAppend(out, dim);
                                      }
                                    }),
                      "]");
}

// Returns an error unless `dims` is a valid shape (`min_dim` 0) or partial shape (`min_dim` -1).
absl::Status CheckDims(absl::Span<const int64_t> dims, int64_t min_dim) {
  if (dims.size() > kMaxDims) {
    return errors::InvalidArgument("a shape has at most ", kMaxDims, " dimensions, but this has ",
                                   dims.size());
  }
  int64_t product = 1;
  for (const int64_t dim : dims) {
    if (dim < min_dim) {
      return errors::InvalidArgument("dimension ", dim, " of shape ", DimsString(dims),
                                     " is negative");
    }
    // The product of the known dimensions must fit, unless one of them is 0.
    if (dim >= 0) product = product < 0 && dim == 0 ? 0 : MultiplyWithoutOverflow(product, dim);
  }
  if (product < 0) {
    return errors::InvalidArgument("shape ", DimsString(dims),
                                   " has more elements than fit in an int64");
  }
  return absl::OkStatus();
}

absl::StatusOr<DimVector> DimsFromProto(const TensorShapeProto& proto) {
  // Checked before the vector grows: untrusted input may have any number of dimensions.
  if (proto.dim_size() > kMaxDims) {
    return errors::InvalidArgument("a shape has at most ", kMaxDims, " dimensions, but this has ",
                                   proto.dim_size());
  }
  DimVector dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return dims;
}

}  // namespace

int64_t MultiplyWithoutOverflow(int64_t a, int64_t b) {
  int64_t product;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return -1;
  return product;
}

namespace internal {

void IndexOutOfRange(const char* function, int64_t index, int64_t size) {
  std::fprintf(stderr,
               "gradflow: %s(%lld): index out of range, expected at least 0 and less than %lld\n",
               function, static_cast<long long>(index), static_cast<long long>(size));  // NOLINT
  std::abort();
}

Dims::Dims(absl::Span<const int64_t> dims) {
  // Sets size_ last, because the allocation may throw.
  if (dims.size() > static_cast<size_t>(kFew)) {
    array_ = MakeArray(dims);
  } else {
    std::copy(dims.begin(), dims.end(), few_.begin());
  }
  size_ = static_cast<int64_t>(dims.size());
}

Dims::Array* Dims::MakeArray(absl::Span<const int64_t> dims) {
  auto* const array = new (::operator new(sizeof(Array) + dims.size() * sizeof(int64_t))) Array();
  std::copy(dims.begin(), dims.end(), array->sizes());
  return array;
}

void Dims::Unref() {
  if (array_->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  array_->~Array();
  ::operator delete(array_);
}

void Dims::Set(size_t d, int64_t size) {
  if (!IsShared()) {
    few_[d] = size;
    return;
  }
  if (array_->refs.load(std::memory_order_acquire) != 1) {
    *this = Dims(absl::Span<const int64_t>(data(), this->size()));
  }
  array_->sizes()[d] = size;
}

size_t Dims::HeapBytes() const { return IsShared() ? sizeof(Array) + size() * sizeof(int64_t) : 0; }

}  // namespace internal

TensorShape::TensorShape(absl::Span<const int64_t> dims) : dims_(dims) { Update(); }

absl::StatusOr<TensorShape> TensorShape::Make(absl::Span<const int64_t> dims) {
  GRADFLOW_RETURN_IF_ERROR(CheckDims(dims, 0));
  return TensorShape(dims);
}

absl::StatusOr<TensorShape> TensorShape::Make(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    return errors::InvalidArgument("expected a shape, but its rank is unknown");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, DimsFromProto(proto));
  return Make(dims);
}

void TensorShape::AsProto(TensorShapeProto* proto) const {
  internal::RequireOut(proto, "TensorShape::AsProto", "proto");
  proto->Clear();
  for (const int64_t dim : dims_) proto->add_dim()->set_size(dim);
}

void TensorShape::Update() {
  valid_ = valid_ && CheckDims(dim_sizes(), 0).ok();
  num_elements_ = valid_ ? 1 : 0;
  for (const int64_t dim : dims_) {
    // Consistent with CheckDims: overflow is allowed if a dimension is 0.
    num_elements_ =
        dim == 0 ? 0 : std::max<int64_t>(MultiplyWithoutOverflow(num_elements_, dim), 0);
    if (num_elements_ == 0) break;
  }
}

void TensorShape::AddDim(int64_t size) { InsertDim(dims(), size); }

void TensorShape::InsertDim(int d, int64_t size) {
  if (d < 0 || d > dims()) {
    valid_ = false;
  } else {
    DimVector dims(dims_.begin(), dims_.end());
    dims.insert(dims.begin() + d, size);
    dims_ = internal::Dims(dims);
  }
  Update();
}

void TensorShape::RemoveDim(int d) {
  if (d < 0 || d >= dims()) {
    valid_ = false;
  } else {
    DimVector dims(dims_.begin(), dims_.end());
    dims.erase(dims.begin() + d);
    dims_ = internal::Dims(dims);
  }
  Update();
}

void TensorShape::set_dim(int d, int64_t size) {
  if (d < 0 || d >= dims()) {
    valid_ = false;
  } else {
    dims_.Set(d, size);
  }
  Update();
}

void TensorShape::AppendShape(const TensorShape& shape) {
  DimVector dims(dims_.begin(), dims_.end());
  dims.insert(dims.end(), shape.dims_.begin(), shape.dims_.end());
  dims_ = internal::Dims(dims);
  valid_ = valid_ && shape.valid_;
  Update();
}

std::string TensorShape::DebugString() const { return DimsString(dim_sizes()); }

PartialTensorShape::PartialTensorShape(absl::Span<const int64_t> dims)
    : dims_(dims), unknown_rank_(false) {}

PartialTensorShape::PartialTensorShape(const TensorShape& shape)
    : dims_(shape.dims_), unknown_rank_(false) {}

absl::StatusOr<PartialTensorShape> PartialTensorShape::Make(absl::Span<const int64_t> dims) {
  GRADFLOW_RETURN_IF_ERROR(CheckDims(dims, -1));
  return PartialTensorShape(dims);
}

absl::StatusOr<PartialTensorShape> PartialTensorShape::Make(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() > 0) {
      return errors::InvalidArgument("a shape of unknown rank has no dimensions, but this has ",
                                     proto.dim_size());
    }
    return PartialTensorShape();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, DimsFromProto(proto));
  return Make(dims);
}

PartialTensorShape PartialTensorShape::UnknownOfRank(int rank) {
  return PartialTensorShape(DimVector(rank, -1));
}

void PartialTensorShape::AsProto(TensorShapeProto* proto) const {
  internal::RequireOut(proto, "PartialTensorShape::AsProto", "proto");
  proto->Clear();
  if (unknown_rank_) proto->set_unknown_rank(true);
  for (const int64_t dim : dims_) proto->add_dim()->set_size(dim);
}

void PartialTensorShape::AddDim(int64_t size) {
  if (unknown_rank_) return;
  DimVector dims(dims_.begin(), dims_.end());
  dims.push_back(size);
  dims_ = internal::Dims(dims);
}

int64_t PartialTensorShape::num_elements() const {
  TensorShape shape;
  return AsTensorShape(&shape) ? shape.num_elements() : -1;
}

bool PartialTensorShape::IsFullyDefined() const {
  if (unknown_rank_) return false;
  for (const int64_t dim : dims_) {
    if (dim < 0) return false;
  }
  return true;
}

bool PartialTensorShape::AsTensorShape(TensorShape* shape) const {
  internal::RequireOut(shape, "PartialTensorShape::AsTensorShape", "shape");
  if (!IsFullyDefined()) return false;
  TensorShape candidate;
  candidate.dims_ = dims_;
  candidate.Update();
  if (!candidate.IsValid()) return false;
  *shape = candidate;
  return true;
}

bool PartialTensorShape::IsCompatibleWith(const PartialTensorShape& other) const {
  if (unknown_rank_ || other.unknown_rank_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d] >= 0 && other.dims_[d] >= 0 && dims_[d] != other.dims_[d]) return false;
  }
  return true;
}

absl::StatusOr<PartialTensorShape> PartialTensorShape::MergeWith(
    const PartialTensorShape& other) const {
  if (!IsCompatibleWith(other)) {
    return errors::InvalidArgument("shapes ", DebugString(), " and ", other.DebugString(),
                                   " are not compatible");
  }
  if (unknown_rank_) return other;
  PartialTensorShape merged = *this;
  if (!other.unknown_rank_) {
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (merged.dims_[d] < 0 && other.dims_[d] >= 0) merged.dims_.Set(d, other.dims_[d]);
    }
  }
  return merged;
}

std::string PartialTensorShape::DebugString() const {
  return unknown_rank_ ? "<unknown>" : DimsString(dim_sizes());
}

}  // namespace gradflow
