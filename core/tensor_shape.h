// Shapes of tensors: TensorShape (all dimensions known) and PartialTensorShape (some or all
// unknown, as shape inference has them).
//
// Both are values. Every product of dimensions is checked: a shape has at most kMaxDims dimensions,
// none negative, and the product of its dimensions fits in an int64. What breaks that is an error
// of Make (for shapes that come from data), and otherwise makes the shape invalid: IsValid() is
// false, num_elements() is 0, and a tensor of it is not initialised. A shape stays invalid.
#ifndef GRADFLOW_CORE_TENSOR_SHAPE_H_
#define GRADFLOW_CORE_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace gradflow {

class TensorShapeProto;

// As in TensorFlow.
inline constexpr int kMaxDims = 254;

// a * b for a, b >= 0, or -1 if an operand is negative or the product exceeds int64.
int64_t MultiplyWithoutOverflow(int64_t a, int64_t b);

// The sizes of dimensions.
using DimVector = absl::InlinedVector<int64_t, 4>;

class TensorShape {
 public:
  // A scalar: no dimensions, one element.
  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> dims)  // NOLINT: as in TensorFlow
      : TensorShape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}
  explicit TensorShape(absl::Span<const int64_t> dims);

  // INVALID_ARGUMENT if the dimensions make no shape.
  static absl::StatusOr<TensorShape> Make(absl::Span<const int64_t> dims);
  static absl::StatusOr<TensorShape> Make(const TensorShapeProto& proto);
  void AsProto(TensorShapeProto* proto) const;

  // False after an operation that had no valid result.
  bool IsValid() const { return valid_; }
  // The number of dimensions.
  int dims() const { return static_cast<int>(dims_.size()); }
  // REQUIRES: 0 <= d < dims()
  int64_t dim_size(int d) const { return dims_[d]; }
  absl::Span<const int64_t> dim_sizes() const { return dims_; }
  int64_t num_elements() const { return num_elements_; }

  // Change the dimensions. What cannot be makes the shape invalid.
  void AddDim(int64_t size);
  void InsertDim(int d, int64_t size);
  void RemoveDim(int d);
  void set_dim(int d, int64_t size);
  void AppendShape(const TensorShape& shape);

  // Whether all dimensions are the same.
  bool IsSameSize(const TensorShape& other) const { return *this == other; }
  friend bool operator==(const TensorShape& a, const TensorShape& b) {
    return a.dims_ == b.dims_ && a.valid_ == b.valid_;
  }
  friend bool operator!=(const TensorShape& a, const TensorShape& b) { return !(a == b); }

  // "[2,3]", "[]" for a scalar.
  std::string DebugString() const;

 private:
  void Update();

  DimVector dims_;
  int64_t num_elements_ = 1;
  bool valid_ = true;
};

// A shape of which the rank, or some dimensions (-1), may be unknown.
class PartialTensorShape {
 public:
  // Unknown rank.
  PartialTensorShape() = default;
  PartialTensorShape(std::initializer_list<int64_t> dims)  // NOLINT: as in TensorFlow
      : PartialTensorShape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}
  explicit PartialTensorShape(absl::Span<const int64_t> dims);
  PartialTensorShape(const TensorShape& shape);  // NOLINT: a known shape is a partial one

  // INVALID_ARGUMENT for a dimension under -1, too many dimensions, or a product of the known
  // ones over int64.
  static absl::StatusOr<PartialTensorShape> Make(absl::Span<const int64_t> dims);
  static absl::StatusOr<PartialTensorShape> Make(const TensorShapeProto& proto);
  static PartialTensorShape UnknownOfRank(int rank);
  void AsProto(TensorShapeProto* proto) const;

  // Whether nothing is known, and whether all is.
  bool unknown_rank() const { return unknown_rank_; }
  // -1 if the rank is unknown.
  int dims() const { return unknown_rank_ ? -1 : static_cast<int>(dims_.size()); }
  // -1 if unknown. REQUIRES: 0 <= d < dims()
  int64_t dim_size(int d) const { return dims_[d]; }
  absl::Span<const int64_t> dim_sizes() const { return dims_; }
  void set_dim(int d, int64_t size) { dims_[d] = size; }
  void AddDim(int64_t size);
  // -1 if any dimension is unknown or the product exceeds int64.
  int64_t num_elements() const;

  // Whether the number and the sizes of all dimensions are known.
  bool IsFullyDefined() const;
  // False, and nothing written, unless fully defined.
  bool AsTensorShape(TensorShape* shape) const;
  bool IsCompatibleWith(const PartialTensorShape& other) const;
  // The shape that has what is known in either; INVALID_ARGUMENT if they contradict.
  absl::StatusOr<PartialTensorShape> MergeWith(const PartialTensorShape& other) const;

  // Whether the same is known of both.
  friend bool operator==(const PartialTensorShape& a, const PartialTensorShape& b) {
    return a.unknown_rank_ == b.unknown_rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const PartialTensorShape& a, const PartialTensorShape& b) {
    return !(a == b);
  }

  // "[2,?]", "<unknown>" if the rank is.
  std::string DebugString() const;

 private:
  DimVector dims_;
  bool unknown_rank_ = true;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_SHAPE_H_
