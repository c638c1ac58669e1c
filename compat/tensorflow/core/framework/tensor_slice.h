// TensorSlice: a part of a tensor, as a start and a length for each dimension.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SLICE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SLICE_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_slice.pb.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

class TensorSlice {
 public:
  // A slice without dimensions, or with `dim` full dimensions.
  TensorSlice() = default;
  explicit TensorSlice(int dim) { SetFullSlice(dim); }
  // Pairs of start and length. A length of -1 means the whole dimension.
  explicit TensorSlice(std::initializer_list<std::pair<int64, int64>> extents);
  explicit TensorSlice(const TensorSliceProto& proto);
  // Sets *output to the slice of `proto`. Returns INVALID_ARGUMENT if a start or length is
  // negative, or the end exceeds int64.
  static absl::Status BuildTensorSlice(const TensorSliceProto& proto, TensorSlice* output);
  // Parses "-:0,10:14,1", where "-" is a full dimension. The second form ends the program on error.
  static absl::Status Parse(const std::string& str, TensorSlice* output);
  static TensorSlice ParseOrDie(const std::string& str) {
    TensorSlice slice;
    TF_CHECK_OK(Parse(str, &slice));
    return slice;
  }

  void Clear() { SetFullSlice(0); }
  void SetFullSlice(int dim);
  // Appends full dimensions.
  void Extend(int dim);

  int dims() const { return static_cast<int>(starts_.size()); }
  int64 start(int d) const { return starts_[d]; }
  int64 length(int d) const { return lengths_[d]; }
  int64 end(int d) const { return starts_[d] + lengths_[d]; }
  void set_start(int d, int64 x) { starts_[d] = x; }
  void set_length(int d, int64 x) { lengths_[d] = x; }
  bool IsFullAt(int d) const { return starts_[d] == 0 && lengths_[d] == kFullExtent; }
  bool IsFull() const;

  void AsProto(TensorSliceProto* proto) const;
  std::string DebugString() const;

  // Stores the intersection in *result, unless it is null. If there is none, returns false and an
  // empty *result.
  bool Intersect(const TensorSlice& other, TensorSlice* result) const;
  bool Overlaps(const TensorSlice& other) const { return Intersect(other, nullptr); }
  // Stores `sub`, which must be within this slice, relative to this slice.
  void ComputeRelative(const TensorSlice& sub, TensorSlice* relative) const;
  // Extends this slice so that it includes `other`.
  void UpdateToCover(const TensorSlice& other);
  // Stores the shape of this slice of a tensor. If the ranks differ or the slice exceeds the shape,
  // returns INTERNAL, and *result_shape is a scalar.
  absl::Status SliceTensorShape(const TensorShape& shape, TensorShape* result_shape) const;
  // Stores the start and the size of each dimension, for Eigen's slice(). Appends dimensions of
  // size 1. REQUIRES: the rank of `shape` is dims(), and at most the rank of the results.
  template <typename Sizes>
  void FillIndicesAndSizes(const TensorShape& shape, Sizes* indices, Sizes* sizes) const {
    CHECK_EQ(shape.dims(), dims());
    CHECK_GE(static_cast<int>(indices->size()), dims());
    for (int d = 0; d < static_cast<int>(indices->size()); ++d) {
      const bool is_full = d < dims() && IsFullAt(d);
      (*indices)[d] = d < dims() && !is_full ? starts_[d] : 0;
      (*sizes)[d] = d >= dims() ? 1 : is_full ? shape.dim_size(d) : lengths_[d];
    }
  }
  template <int NDIMS, typename Sizes>
  void FillIndicesAndSizes(const TensorShape& shape, Sizes* indices, Sizes* sizes) const {
    FillIndicesAndSizes(shape, indices, sizes);
  }

  static bool HasExtentLength(const TensorSliceProto::Extent& extent);
  // Returns -1 if the extent has no length.
  static int64 GetExtentLength(const TensorSliceProto::Extent& extent);

  bool operator==(const TensorSlice& other) const {
    return starts_ == other.starts_ && lengths_ == other.lengths_;
  }
  bool operator!=(const TensorSlice& other) const { return !(*this == other); }

 private:
  static constexpr int64 kFullExtent = -1;

  absl::InlinedVector<int64, 4> starts_;
  absl::InlinedVector<int64, 4> lengths_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SLICE_H_
