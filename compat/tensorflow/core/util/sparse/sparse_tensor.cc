#include "tensorflow/core/util/sparse/sparse_tensor.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensorflow {
namespace sparse {
namespace {

// "indices[2] = [0,1,3]"
template <typename Matrix>
std::string EntryText(const Matrix& ix, int64_t entry, int dims) {
  std::vector<int64_t> index;
  for (int d = 0; d < dims; ++d) index.push_back(ix(entry, d));
  return absl::StrCat("indices[", entry, "] = [", absl::StrJoin(index, ","), "]");
}

bool IsPermutation(absl::Span<const int64_t> order) {
  std::vector<int64_t> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < sorted.size(); ++d) {
    if (sorted[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

}  // namespace

absl::Status SparseTensor::Create(Tensor ix, Tensor vals, VarDimArray shape, VarDimArray order,
                                  SparseTensor* result) {
  if (ix.dtype() != DT_INT64) {
    return errors::InvalidArgument("expected indices of type int64, found ",
                                   DataTypeString(ix.dtype()));
  }
  if (ix.dims() != 2) {
    return errors::InvalidArgument("expected a matrix of indices, found shape ",
                                   ix.shape().DebugString());
  }
  if (vals.dims() != 1 || vals.dim_size(0) != ix.dim_size(0)) {
    return errors::InvalidArgument("expected values of shape [", ix.dim_size(0), "], found ",
                                   vals.shape().DebugString());
  }
  const auto dims = static_cast<size_t>(ix.dim_size(1));
  if (shape.size() != dims || order.size() != dims) {
    return errors::InvalidArgument("the indices have ", dims, " dimensions, the shape ",
                                   shape.size(), " and the order ", order.size());
  }
  result->ix_ = std::move(ix);
  result->vals_ = std::move(vals);
  result->shape_.assign(shape.begin(), shape.end());
  result->order_.assign(order.begin(), order.end());
  return absl::OkStatus();
}

absl::Status SparseTensor::Create(Tensor ix, Tensor vals, VarDimArray shape, SparseTensor* result) {
  return Create(std::move(ix), std::move(vals), shape, UnknownOrder(shape.size()), result);
}

SparseTensor::SparseTensor(Tensor ix, Tensor vals, VarDimArray shape)
    : SparseTensor(std::move(ix), std::move(vals), shape, UnknownOrder(shape.size())) {}

SparseTensor::SparseTensor(Tensor ix, Tensor vals, VarDimArray shape, VarDimArray order) {
  TF_CHECK_OK(Create(std::move(ix), std::move(vals), shape, order, this));
}

std::vector<int64_t> SparseTensor::PickDims(VarDimArray dims) const {
  std::vector<int64_t> result;
  for (const int64_t d : dims) {
    CHECK(d >= 0 && d < this->dims()) << "there is no dimension " << d;
    result.push_back(shape_[d]);
  }
  return result;
}

absl::Status SparseTensor::CheckIndices() const {
  if (!IsPermutation(order_)) {
    return errors::FailedPrecondition("the order of the entries is not known: it is [",
                                      absl::StrJoin(order_, ","), "]");
  }
  const auto ix = ix_.matrix<int64_t>();
  for (int64_t i = 0; i < ix_.dim_size(0); ++i) {
    for (int d = 0; d < dims(); ++d) {
      if (ix(i, d) < 0 || ix(i, d) >= shape_[d]) {
        return errors::InvalidArgument(EntryText(ix, i, dims()),
                                       " is out of bounds: need 0 <= index < [",
                                       absl::StrJoin(shape_, ","), "]");
      }
    }
    if (i == 0) continue;
    const auto differs = [&](int64_t d) { return ix(i, d) != ix(i - 1, d); };
    const auto first = std::find_if(order_.begin(), order_.end(), differs);
    if (first == order_.end()) {
      return errors::InvalidArgument(EntryText(ix, i, dims()), " is repeated");
    }
    if (ix(i, *first) < ix(i - 1, *first)) {
      return errors::InvalidArgument(EntryText(ix, i, dims()),
                                     " is out of order: sort the entries with Reorder");
    }
  }
  return absl::OkStatus();
}

std::vector<int64_t> SparseTensor::SortedEntries(VarDimArray order) {
  CHECK(order.size() == shape_.size() && IsPermutation(order))
      << "expected an order of " << dims() << " dimensions, found [" << absl::StrJoin(order, ",")
      << "]";
  auto ix = ix_.matrix<int64_t>();
  std::vector<int64_t> entries(num_entries());
  std::iota(entries.begin(), entries.end(), 0);
  std::stable_sort(entries.begin(), entries.end(), DimComparator(ix, order, shape_));
  std::vector<int64_t> sorted;
  sorted.reserve(entries.size() * shape_.size());
  for (const int64_t entry : entries) {
    for (int d = 0; d < dims(); ++d) sorted.push_back(ix(entry, d));
  }
  std::copy(sorted.begin(), sorted.end(), ix.data());
  order_.assign(order.begin(), order.end());
  return entries;
}

GroupIterable SparseTensor::group(VarDimArray dims) const {
  CHECK_LE(dims.size(), order_.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    CHECK_EQ(dims[i], order_[i]) << "the entries are sorted by [" << absl::StrJoin(order_, ",")
                                 << "]";
  }
  return GroupIterable(ix_, vals_, this->dims(), dims);
}

absl::StatusOr<std::vector<int64_t>> SparseTensor::DensePositions(const TensorShape& shape) const {
  bool fits = shape.dims() == dims();
  for (int d = 0; fits && d < dims(); ++d) fits = shape.dim_size(d) >= shape_[d];
  if (!fits) return errors::InvalidArgument("the dense tensor has shape ", shape.DebugString());
  const auto ix = ix_.matrix<int64_t>();
  std::vector<int64_t> positions(num_entries(), 0);
  for (size_t i = 0; i < positions.size(); ++i) {
    for (int d = 0; d < dims(); ++d) {
      if (ix(i, d) < 0 || ix(i, d) >= shape.dim_size(d)) {
        return errors::InvalidArgument(EntryText(ix, i, dims()), " is out of bounds");
      }
      positions[i] = positions[i] * shape.dim_size(d) + ix(i, d);
    }
  }
  return positions;
}

SparseTensor SparseTensor::ConcatIndices(absl::Span<const SparseTensor> tensors) {
  CHECK(!tensors.empty()) << "there are no tensors to concatenate";
  const SparseTensor& first = tensors[0];
  CHECK(first.dims() > 0 && IsPermutation(first.order_)) << "the order is not known";
  const int64_t axis = first.order_[0];
  int64_t entries = 0;
  ShapeArray order = first.order_;
  ShapeArray shape = first.shape_;
  shape[axis] = 0;
  for (const SparseTensor& tensor : tensors) {
    CHECK(tensor.dtype() == first.dtype() && tensor.dims() == first.dims());
    CHECK(IsPermutation(tensor.order_) && tensor.order_[0] == axis)
        << "a tensor is sorted by [" << absl::StrJoin(tensor.order_, ",") << "], the first one by ["
        << absl::StrJoin(first.order_, ",") << "]";
    for (int d = 0; d < first.dims(); ++d) {
      CHECK(d == axis || tensor.shape_[d] == shape[d])
          << "the sizes of dimension " << d << " differ";
    }
    if (tensor.order_ != first.order_) order = UnknownOrder(shape.size());
    shape[axis] += tensor.shape_[axis];
    entries += tensor.ix_.dim_size(0);
  }

  Tensor ix(DT_INT64, TensorShape({entries, first.dims()}));
  auto to = ix.matrix<int64_t>();
  int64_t next = 0;
  int64_t offset = 0;
  for (const SparseTensor& tensor : tensors) {
    const auto from = tensor.ix_.matrix<int64_t>();
    for (int64_t i = 0; i < tensor.ix_.dim_size(0); ++i, ++next) {
      for (int d = 0; d < first.dims(); ++d) to(next, d) = from(i, d) + (d == axis ? offset : 0);
    }
    offset += tensor.shape_[axis];
  }
  return SparseTensor(std::move(ix), Tensor(first.dtype(), TensorShape({entries})), shape, order);
}

SparseTensor SparseTensor::FromPart(const SparseTensor& tensor, const Part& part, Tensor vals) {
  const auto entries = static_cast<int64_t>(part.entries.size());
  Tensor ix(DT_INT64, TensorShape({entries, tensor.dims()}));
  const auto from = tensor.ix_.matrix<int64_t>();
  auto to = ix.matrix<int64_t>();
  for (int64_t i = 0; i < entries; ++i) {
    for (int d = 0; d < tensor.dims(); ++d) to(i, d) = from(part.entries[i], d) - part.start[d];
  }
  return SparseTensor(std::move(ix), std::move(vals), part.shape, tensor.order_);
}

absl::StatusOr<std::vector<SparseTensor::Part>> SparseTensor::SplitParts(const SparseTensor& tensor,
                                                                         int split_dim,
                                                                         int num_split) {
  if (split_dim < 0 || split_dim >= tensor.dims()) {
    return errors::InvalidArgument("there is no dimension ", split_dim, " of ", tensor.dims());
  }
  const int64_t total = tensor.shape_[split_dim];
  if (num_split <= 0 || num_split > total) {
    return errors::InvalidArgument("dimension ", split_dim, " of size ", total,
                                   " cannot be split into ", num_split, " parts");
  }
  const int64_t small = total / num_split;
  const int64_t larger = total % num_split;
  std::vector<Part> parts(num_split);
  int64_t start = 0;
  for (int p = 0; p < num_split; ++p) {
    parts[p].start.assign(tensor.shape_.size(), 0);
    parts[p].start[split_dim] = start;
    parts[p].shape = tensor.shape_;
    parts[p].shape[split_dim] = small + (p < larger ? 1 : 0);
    start += parts[p].shape[split_dim];
  }
  const auto ix = tensor.ix_.matrix<int64_t>();
  for (int64_t i = 0; i < tensor.ix_.dim_size(0); ++i) {
    const int64_t index = ix(i, split_dim);
    if (index < 0 || index >= total) {
      return errors::InvalidArgument(EntryText(ix, i, tensor.dims()),
                                     " is out of bounds: dimension ", split_dim, " has size ",
                                     total);
    }
    const int64_t in_larger = larger * (small + 1);
    const int64_t part =
        index < in_larger ? index / (small + 1) : larger + (index - in_larger) / small;
    parts[part].entries.push_back(i);
  }
  return parts;
}

absl::StatusOr<SparseTensor::Part> SparseTensor::SlicePart(const SparseTensor& tensor,
                                                           VarDimArray start, VarDimArray size) {
  if (start.size() != tensor.shape_.size() || size.size() != tensor.shape_.size()) {
    return errors::InvalidArgument("expected ", tensor.dims(), " starts and sizes, found ",
                                   start.size(), " and ", size.size());
  }
  Part part;
  part.start.assign(start.begin(), start.end());
  for (int d = 0; d < tensor.dims(); ++d) {
    if (start[d] < 0 || size[d] < 0) {
      return errors::InvalidArgument("the slice of dimension ", d, " starts at ", start[d],
                                     " and has size ", size[d]);
    }
    part.shape.push_back(std::min(size[d], std::max<int64_t>(tensor.shape_[d] - start[d], 0)));
  }
  const auto ix = tensor.ix_.matrix<int64_t>();
  for (int64_t i = 0; i < tensor.ix_.dim_size(0); ++i) {
    bool inside = true;
    for (int d = 0; inside && d < tensor.dims(); ++d) {
      inside = ix(i, d) >= start[d] && ix(i, d) - start[d] < part.shape[d];
    }
    if (inside) part.entries.push_back(i);
  }
  return part;
}

}  // namespace sparse
}  // namespace tensorflow
