// SparseTensor: the indices, the values and the dense shape of a sparse tensor. Sparse ops take and
// return them as separate tensors.
//
// Copies share their elements: Reorder() changes the elements of all copies.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_SPARSE_SPARSE_TENSOR_H_
#define GRADFLOW_COMPAT_CORE_UTIL_SPARSE_SPARSE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/util/sparse/dim_comparator.h"
#include "tensorflow/core/util/sparse/group_iterator.h"

namespace tensorflow {
namespace sparse {

class SparseTensor {
 public:
  using VarDimArray = absl::Span<const int64_t>;
  using ShapeArray = absl::InlinedVector<int64_t, 8>;
#ifdef GRADFLOW_TENSORFLOW_V1
  // As in TensorFlow 1.x, an error ends the program.
  using SliceResult = SparseTensor;
#else
  using SliceResult = absl::StatusOr<SparseTensor>;
#endif

  // Creates a sparse tensor of int64 indices [entries, dims] and values [entries]. The entries are
  // sorted by the dimensions in `order`, most significant first. Without `order`, the order is
  // unknown: each of its elements is -1. Returns INVALID_ARGUMENT if types or shapes are wrong.
  static absl::Status Create(Tensor ix, Tensor vals, VarDimArray shape, VarDimArray order,
                             SparseTensor* result);
  static absl::Status Create(Tensor ix, Tensor vals, VarDimArray shape, SparseTensor* result);
  static absl::Status Create(Tensor ix, Tensor vals, const TensorShape& shape, VarDimArray order,
                             SparseTensor* result) {
    return Create(std::move(ix), std::move(vals), shape.dim_sizes(), order, result);
  }
  static absl::Status Create(Tensor ix, Tensor vals, const TensorShape& shape,
                             SparseTensor* result) {
    return Create(std::move(ix), std::move(vals), shape.dim_sizes(), result);
  }

  SparseTensor() = default;
  // Like Create(), but errors end the program.
  SparseTensor(Tensor ix, Tensor vals, VarDimArray shape);
  SparseTensor(Tensor ix, Tensor vals, VarDimArray shape, VarDimArray order);
  SparseTensor(Tensor ix, Tensor vals, const TensorShape& shape)
      : SparseTensor(std::move(ix), std::move(vals), shape.dim_sizes()) {}
  SparseTensor(Tensor ix, Tensor vals, const TensorShape& shape, VarDimArray order)
      : SparseTensor(std::move(ix), std::move(vals), shape.dim_sizes(), order) {}

  size_t num_entries() const { return static_cast<size_t>(ix_.dim_size(0)); }
  int dims() const { return static_cast<int>(shape_.size()); }
  const Tensor& indices() const { return ix_; }
  const Tensor& values() const { return vals_; }
  DataType dtype() const { return vals_.dtype(); }
  VarDimArray shape() const { return shape_; }
  VarDimArray order() const { return order_; }
  // Returns the sizes of some dimensions.
  std::vector<int64_t> PickDims(VarDimArray dims) const;

  // Returns INVALID_ARGUMENT and names the first entry if an index is out of bounds, repeated or
  // out of order. Returns FAILED_PRECONDITION if the order is unknown.
  Status IndicesValid() const { return CheckIndices(); }

  // Sorts the entries in place. The sort is stable. Ends the program if T is not the type of the
  // values, or `order` is not a permutation of the dimensions.
  template <typename T>
  void Reorder(VarDimArray order);

  // Returns the groups of entries with equal indices in `dims`. Ends the program unless the entries
  // are sorted by these dimensions first.
  GroupIterable group(VarDimArray dims) const;

  // Writes the values to a dense tensor that is at least as large. The other elements become T() if
  // `initialize`. Returns false if the tensor has another type or rank or is smaller, or if an
  // index is outside of it.
  template <typename T>
  bool ToDense(Tensor* out, bool initialize = true) const;

  // Concatenates along the first dimension of the order. If all arguments have the same order, the
  // result keeps it. Ends the program if there are no arguments, or if types, ranks, sizes of other
  // dimensions, or first dimensions of the orders differ.
  template <typename T>
  static SparseTensor Concat(absl::Span<const SparseTensor> tensors);

  // Splits along a dimension into parts whose sizes differ by at most 1, larger parts first.
  // Returns INVALID_ARGUMENT if the dimension does not exist, if it has fewer elements than there
  // are parts, or if an index is out of bounds.
  template <typename T>
  static absl::Status Split(const SparseTensor& tensor, int split_dim, int num_split,
                            std::vector<SparseTensor>* result);
  // Like the overload above, but errors end the program.
  template <typename T>
  static std::vector<SparseTensor> Split(const SparseTensor& tensor, int split_dim, int num_split) {
    std::vector<SparseTensor> result;
    TF_CHECK_OK(Split<T>(tensor, split_dim, num_split, &result));
    return result;
  }

  // Returns the slice of `size` elements from `start` in each dimension, clamped to the tensor.
  // Returns INVALID_ARGUMENT if a number is negative or missing.
  template <typename T>
  static SliceResult Slice(const SparseTensor& tensor, VarDimArray start, VarDimArray size);

 private:
  absl::Status CheckIndices() const;
  // Entries of another tensor, by number. Their indices are relative to `start`.
  struct Part {
    std::vector<int64_t> entries;
    ShapeArray start;
    ShapeArray shape;
  };

  static ShapeArray UnknownOrder(size_t dims) { return ShapeArray(dims, -1); }
  // Return the numbers of all entries in sorted order, or of the entries of a part.
  std::vector<int64_t> SortedEntries(VarDimArray order);
  static absl::StatusOr<std::vector<Part>> SplitParts(const SparseTensor& tensor, int split_dim,
                                                      int num_split);
  static absl::StatusOr<Part> SlicePart(const SparseTensor& tensor, VarDimArray start,
                                        VarDimArray size);
  // Returns a tensor with the part's indices and `vals`.
  static SparseTensor FromPart(const SparseTensor& tensor, const Part& part, Tensor vals);
  // Returns the tensor that Concat() fills with entries.
  static SparseTensor ConcatIndices(absl::Span<const SparseTensor> tensors);
  // Returns the position of each entry in a dense tensor of this shape. Returns an error if an
  // entry is outside.
  absl::StatusOr<std::vector<int64_t>> DensePositions(const TensorShape& shape) const;
  template <typename T>
  static SparseTensor Take(const SparseTensor& tensor, const Part& part);

  Tensor ix_;
  Tensor vals_;
  ShapeArray shape_;
  ShapeArray order_;
};

template <typename T>
void SparseTensor::Reorder(VarDimArray order) {
  auto vals = vals_.vec<T>();
  const std::vector<int64_t> entries = SortedEntries(order);
  const std::unique_ptr<T[]> sorted(new T[entries.size()]);
  for (size_t i = 0; i < entries.size(); ++i) sorted[i] = std::move(vals(entries[i]));
  for (size_t i = 0; i < entries.size(); ++i) vals(i) = std::move(sorted[i]);
}

template <typename T>
bool SparseTensor::ToDense(Tensor* out, bool initialize) const {
  if (out->dtype() != DataTypeToEnum<T>::value || dtype() != DataTypeToEnum<T>::value) return false;
  const absl::StatusOr<std::vector<int64_t>> positions = DensePositions(out->shape());
  if (!positions.ok()) return false;
  auto dense = out->flat<T>();
  const auto vals = vals_.vec<T>();
  if (initialize) {
    for (int64_t i = 0; i < out->NumElements(); ++i) dense(i) = T();
  }
  for (size_t i = 0; i < positions->size(); ++i) dense((*positions)[i]) = vals(i);
  return true;
}

template <typename T>
SparseTensor SparseTensor::Take(const SparseTensor& tensor, const Part& part) {
  Tensor vals(tensor.dtype(), TensorShape({static_cast<int64_t>(part.entries.size())}));
  const auto from = tensor.vals_.vec<T>();
  auto to = vals.vec<T>();
  for (size_t i = 0; i < part.entries.size(); ++i) to(i) = from(part.entries[i]);
  return FromPart(tensor, part, std::move(vals));
}

template <typename T>
SparseTensor SparseTensor::Concat(absl::Span<const SparseTensor> tensors) {
  SparseTensor result = ConcatIndices(tensors);
  auto to = result.vals_.vec<T>();
  int64_t next = 0;
  for (const SparseTensor& tensor : tensors) {
    const auto from = tensor.vals_.vec<T>();
    for (size_t i = 0; i < tensor.num_entries(); ++i) to(next++) = from(i);
  }
  return result;
}

template <typename T>
absl::Status SparseTensor::Split(const SparseTensor& tensor, int split_dim, int num_split,
                                 std::vector<SparseTensor>* result) {
  const absl::StatusOr<std::vector<Part>> parts = SplitParts(tensor, split_dim, num_split);
  if (!parts.ok()) return parts.status();
  result->clear();
  for (const Part& part : *parts) result->push_back(Take<T>(tensor, part));
  return absl::OkStatus();
}

template <typename T>
SparseTensor::SliceResult SparseTensor::Slice(const SparseTensor& tensor, VarDimArray start,
                                              VarDimArray size) {
  const absl::StatusOr<Part> part = SlicePart(tensor, start, size);
#ifdef GRADFLOW_TENSORFLOW_V1
  TF_CHECK_OK(part.status());
#else
  if (!part.ok()) return part.status();
#endif
  return Take<T>(tensor, *part);
}

}  // namespace sparse
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_SPARSE_SPARSE_TENSOR_H_
