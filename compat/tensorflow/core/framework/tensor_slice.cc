#include "tensorflow/core/framework/tensor_slice.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {

TensorSlice::TensorSlice(std::initializer_list<std::pair<int64, int64>> extents) {
  for (const auto& [start, length] : extents) {
    starts_.push_back(start);
    lengths_.push_back(length);
  }
}

TensorSlice::TensorSlice(const TensorSliceProto& proto) {
  for (const auto& extent : proto.extent()) {
    starts_.push_back(extent.start());
    lengths_.push_back(GetExtentLength(extent));
  }
}

absl::Status TensorSlice::BuildTensorSlice(const TensorSliceProto& proto, TensorSlice* output) {
  TensorSlice slice;
  for (const auto& extent : proto.extent()) {
    int64 length = GetExtentLength(extent);
    if (extent.start() < 0) {
      return errors::InvalidArgument("Expected non-negative start but got ", extent.start());
    }
    int64 end = 0;
    if (!HasExtentLength(extent)) {
      if (extent.start() != 0) {
        return errors::InvalidArgument("Expected a length of the extent that starts at ",
                                       extent.start());
      }
    } else if (length < 0) {
      return errors::InvalidArgument("Expected non-negative length but got ", length);
    } else if (__builtin_add_overflow(extent.start(), length, &end)) {
      return errors::InvalidArgument("Extent end exceeds int64: start ", extent.start(),
                                     ", length ", length);
    }
    slice.starts_.push_back(extent.start());
    slice.lengths_.push_back(length);
  }
  *output = std::move(slice);
  return absl::OkStatus();
}

absl::Status TensorSlice::Parse(const std::string& str, TensorSlice* output) {
  TensorSlice slice;
  const std::vector<std::string> items =
      str.empty() ? std::vector<std::string>() : absl::StrSplit(str, ':');
  for (const std::string& item : items) {
    int64 start = 0, length = kFullExtent;
    if (item != "-") {
      const std::vector<std::string> pair = absl::StrSplit(item, ',');
      if (pair.size() != 2 || !absl::SimpleAtoi(pair[0], &start) ||
          !absl::SimpleAtoi(pair[1], &length)) {
        return errors::InvalidArgument("Expected a pair of numbers or '-' but got '", item,
                                       "': string = ", str);
      }
      if (start < 0 || length <= 0) {
        return errors::InvalidArgument(
            "Expected non-negative start and positive length but got start = ", start,
            ", length = ", length, ": string = ", str);
      }
    }
    slice.starts_.push_back(start);
    slice.lengths_.push_back(length);
  }
  *output = std::move(slice);
  return absl::OkStatus();
}

void TensorSlice::SetFullSlice(int dim) {
  starts_.assign(dim, 0);
  lengths_.assign(dim, kFullExtent);
}

void TensorSlice::Extend(int dim) {
  starts_.resize(std::max(dim, dims()), 0);
  lengths_.resize(starts_.size(), kFullExtent);
}

bool TensorSlice::IsFull() const {
  for (int d = 0; d < dims(); ++d) {
    if (!IsFullAt(d)) return false;
  }
  return true;
}

void TensorSlice::AsProto(TensorSliceProto* proto) const {
  for (int d = 0; d < dims(); ++d) {
    auto* const extent = proto->add_extent();
    if (IsFullAt(d)) continue;
    extent->set_start(starts_[d]);
    extent->set_length(lengths_[d]);
  }
}

std::string TensorSlice::DebugString() const {
  std::vector<std::string> parts;
  for (int d = 0; d < dims(); ++d) {
    parts.push_back(IsFullAt(d) ? "-" : absl::StrCat(starts_[d], ",", lengths_[d]));
  }
  return absl::StrJoin(parts, ":");
}

bool TensorSlice::Intersect(const TensorSlice& other, TensorSlice* result) const {
  if (result != nullptr) result->Clear();
  if (dims() != other.dims()) return false;
  TensorSlice both(dims());
  for (int d = 0; d < dims(); ++d) {
    if (IsFullAt(d) || other.IsFullAt(d)) {
      const TensorSlice& part = IsFullAt(d) ? other : *this;
      both.starts_[d] = part.starts_[d];
      both.lengths_[d] = part.lengths_[d];
      continue;
    }
    both.starts_[d] = std::max(starts_[d], other.starts_[d]);
    both.lengths_[d] = std::min(end(d), other.end(d)) - both.starts_[d];
    if (both.lengths_[d] <= 0) return false;
  }
  if (result != nullptr) *result = std::move(both);
  return true;
}

void TensorSlice::ComputeRelative(const TensorSlice& sub, TensorSlice* relative) const {
  CHECK_EQ(dims(), sub.dims());
  TensorSlice result = sub;
  for (int d = 0; d < dims(); ++d) {
    if (!IsFullAt(d)) result.starts_[d] = sub.starts_[d] - starts_[d];
  }
  *relative = std::move(result);
}

void TensorSlice::UpdateToCover(const TensorSlice& other) {
  CHECK_EQ(dims(), other.dims());
  for (int d = 0; d < dims(); ++d) {
    if (IsFullAt(d)) continue;
    if (other.IsFullAt(d)) {
      starts_[d] = 0;
      lengths_[d] = kFullExtent;
    } else {
      const int64 new_end = std::max(end(d), other.end(d));
      starts_[d] = std::min(starts_[d], other.starts_[d]);
      lengths_[d] = new_end - starts_[d];
    }
  }
}

absl::Status TensorSlice::SliceTensorShape(const TensorShape& shape,
                                           TensorShape* result_shape) const {
  result_shape->Clear();
  if (shape.dims() != dims()) {
    return errors::Internal("Mismatching ranks: shape = ", shape.DebugString(),
                            ", slice = ", DebugString());
  }
  TensorShape result;
  for (int d = 0; d < dims(); ++d) {
    if (IsFullAt(d)) {
      result.AddDim(shape.dim_size(d));
    } else if (starts_[d] < 0 || lengths_[d] < 0 || lengths_[d] > shape.dim_size(d) ||
               starts_[d] > shape.dim_size(d) - lengths_[d]) {
      return errors::Internal("Extent in dimension ", d,
                              " out of bounds: shape = ", shape.DebugString(),
                              ", slice = ", DebugString());
    } else {
      result.AddDim(lengths_[d]);
    }
  }
  *result_shape = result;
  return absl::OkStatus();
}

bool TensorSlice::HasExtentLength(const TensorSliceProto::Extent& extent) {
  return extent.has_length_case() == TensorSliceProto::Extent::kLength;
}

int64 TensorSlice::GetExtentLength(const TensorSliceProto::Extent& extent) {
  return HasExtentLength(extent) ? extent.length() : kFullExtent;
}

}  // namespace tensorflow
