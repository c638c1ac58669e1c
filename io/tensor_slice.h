// TensorSlice: the part of a tensor within a range of each dimension, and its texts.
//
// In text, a slice has a range for each dimension, separated by ':'. A range is "-" for the whole
// dimension, otherwise "start,length". "3 4 0,2:-" is the first two rows of a tensor of shape
// [3,4]. Internal.
#ifndef GRADFLOW_IO_TENSOR_SLICE_H_
#define GRADFLOW_IO_TENSOR_SLICE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {
class TensorSliceProto;
}  // namespace gradflow

#pragma GCC visibility push(default)
namespace gradflow::internal {

struct TensorSlice {
  // The range of a dimension; the whole dimension if `length` is negative.
  struct Extent {
    int64_t start = 0;
    int64_t length = -1;
  };
  std::vector<Extent> extents;

  // Returns the slice of a whole tensor.
  static TensorSlice Full(int dims) { return {std::vector<Extent>(dims)}; }
  static absl::StatusOr<TensorSlice> FromProto(const TensorSliceProto& proto);
  void ToProto(TensorSliceProto* proto) const;

  // Returns the slice with a length for each dimension of `shape`. Returns INVALID_ARGUMENT if it
  // is not within `shape`.
  absl::StatusOr<TensorSlice> Resolve(const TensorShape& shape) const;
  // Returns the shape of the slice. REQUIRES: Resolve() returned it
  TensorShape Shape() const;
  // Returns true if the slice is a whole tensor of this shape. REQUIRES: Resolve() returned it
  bool IsFull(const TensorShape& shape) const { return Shape() == shape; }
  // Returns the text of the slice, "0,2:-". Long texts are cut.
  std::string DebugString() const;
};

// The parsed text of a shape and slice.
struct ShapeAndSlice {
  TensorShape shape;
  TensorSlice slice;
};
absl::StatusOr<ShapeAndSlice> ParseShapeAndSlice(absl::string_view text);

// Returns the key of a slice of the tensor `name`. Ranges of a whole dimension have length -1.
std::string EncodeSliceKey(absl::string_view name, const TensorSlice& slice);

// Returns the number of elements that two slices of a tensor have in common. REQUIRES: both have
// lengths
int64_t NumCommonElements(const TensorSlice& a, const TensorSlice& b);

// Returns OK if no two slices of a tensor have a common element. Otherwise returns INVALID_ARGUMENT
// and names two slices that overlap. Returns RESOURCE_EXHAUSTED if there are too many slices to
// compare. Sets of up to 1,000 slices and grids of any size can always be compared.
// REQUIRES: the slices have lengths
absl::Status CheckDisjoint(absl::Span<const TensorSlice> slices);
// Returns OK if no two slices overlap and each element of `whole` is in a slice. Otherwise returns
// the errors of CheckDisjoint(), or INVALID_ARGUMENT with an element that no slice has. The time
// has the same bound as in CheckDisjoint(). REQUIRES: the slices and `whole` have lengths
absl::Status CheckTiling(absl::Span<const TensorSlice> slices, const TensorSlice& whole);
// Returns the approximate memory of a slice in a vector, including the memory that the functions
// above need for it.
constexpr size_t TensorSliceBytes(int dims) {
  return 128 + sizeof(TensorSlice::Extent) * static_cast<size_t>(dims);
}

// Copies the elements that `from_slice` and `to_slice` have in common from `from` to `to`, which
// hold these slices of a tensor. Returns the number of copied elements. REQUIRES: both slices have
// lengths, and the tensors have the shapes of the slices and the same type
int64_t CopySlice(const Tensor& from, const TensorSlice& from_slice, const TensorSlice& to_slice,
                  Tensor* to);

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_TENSOR_SLICE_H_
