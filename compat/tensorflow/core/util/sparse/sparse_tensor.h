// SparseTensor: the indices and values of a sparse tensor, which sparse ops take and return as
// separate tensors, and its dense shape.
//
// Copies share the elements: Reorder() changes those of all copies.
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

  // A sparse tensor of indices [entries, dims], of type int64, and values [entries]. `order` lists
  // the dimensions by which the entries are sorted, the most significant one first. It is not known
  // if it is left out: each element is -1. Returns INVALID_ARGUMENT if types or shapes are wrong.
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
  // Like Create(), but an error ends the program.
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
  // The sizes of some dimensions.
  std::vector<int64_t> PickDims(VarDimArray dims) const;

  // Returns INVALID_ARGUMENT, naming the first entry, if an index is out of bounds, repeated or not
  // in order; FAILED_PRECONDITION if the order is not known.
  Status IndicesValid() const { return CheckIndices(); }

  // Sorts the entries in place. Entries of equal indices keep their order. Ends the program if T is
  // not the type of the values, or `order` is not one of the dimensions.
  template <typename T>
  void Reorder(VarDimArray order);

  // The entries by groups of equal indices in `dims`. Ends the program unless the entries are
  // sorted by these dimensions first.
  GroupIterable group(VarDimArray dims) const;

  // Writes the values to a dense tensor that is at least as large. The other elements become T() if
  // `initialize`. Returns false if the tensor has another type or rank or is smaller, or if an
  // index is not in it.
  template <typename T>
  bool ToDense(Tensor* out, bool initialize = true) const;

  // Concatenates along the first dimension of the order. The order of the result is that of the
  // arguments, if they have the same. Ends the program if there are none, or types, ranks, sizes of
  // other dimensions or the first dimensions of the orders differ.
  template <typename T>
  static SparseTensor Concat(absl::Span<const SparseTensor> tensors);

  // Splits along a dimension into parts whose sizes differ by 1 at most, the larger ones first.
  // Returns INVALID_ARGUMENT if there is no such dimension, if it has fewer elements than there
  // are parts, or if an index is out of bounds.
  template <typename T>
  static absl::Status Split(const SparseTensor& tensor, int split_dim, int num_split,
                            std::vector<SparseTensor>* result);
  // Like the one above, but an error ends the program.
  template <typename T>
  static std::vector<SparseTensor> Split(const SparseTensor& tensor, int split_dim, int num_split) {
    std::vector<SparseTensor> result;
    TF_CHECK_OK(Split<T>(tensor, split_dim, num_split, &result));
    return result;
  }

  // The part of `size` elements from `start` on in each dimension, as far as the tensor has them.
  // INVALID_ARGUMENT if a number is negative or not there.
  template <typename T>
  static SliceResult Slice(const SparseTensor& tensor, VarDimArray start, VarDimArray size);

 private:
  absl::Status CheckIndices() const;
  // Entries of another tensor, by number, whose indices begin at `start`.
  struct Part {
    std::vector<int64_t> entries;
    ShapeArray start;
    ShapeArray shape;
  };

  static ShapeArray UnknownOrder(size_t dims) { return ShapeArray(dims, -1); }
  // Return the numbers of the entries: sorted, or those of a part.
  std::vector<int64_t> SortedEntries(VarDimArray order);
  static absl::StatusOr<std::vector<Part>> SplitParts(const SparseTensor& tensor, int split_dim,
                                                      int num_split);
  static absl::StatusOr<Part> SlicePart(const SparseTensor& tensor, VarDimArray start,
                                        VarDimArray size);
  // Returns a tensor of the part's indices and of `vals`.
  static SparseTensor FromPart(const SparseTensor& tensor, const Part& part, Tensor vals);
  // Returns the tensor without entries that Concat() fills.
  static SparseTensor ConcatIndices(absl::Span<const SparseTensor> tensors);
  // Returns the position of each entry in a dense tensor of a shape; nothing if one is outside.
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
