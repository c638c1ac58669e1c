// Shapes of tensors: TensorShape (all dimensions known) and PartialTensorShape (some or all
// dimensions unknown, as in shape inference). Both are value types.
//
// A shape has at most kMaxDims dimensions, none negative, and their product fits in an int64. Make
// returns an error if its arguments violate this; use it for shapes that come from data. Other
// operations make the shape invalid instead: IsValid() is false, num_elements() is 0, and a tensor
// of that shape is not initialised. An invalid shape stays invalid.
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

// The maximum rank, as in TensorFlow.
inline constexpr int kMaxDims = 254;

// Returns a * b, or -1 if an operand is negative or the product exceeds int64.
int64_t MultiplyWithoutOverflow(int64_t a, int64_t b);

// Sizes of dimensions.
using DimVector = absl::InlinedVector<int64_t, 4>;

class TensorShape {
 public:
  // A scalar: no dimensions, one element.
  TensorShape() = default;
  TensorShape(const TensorShape&) = default;
  TensorShape(TensorShape&&) = default;
  // By a copy and a move, which for a few dimensions both copy the memory.
  TensorShape& operator=(const TensorShape& other) {
    return this == &other ? *this : *this = TensorShape(other);
  }
  TensorShape& operator=(TensorShape&&) = default;
  TensorShape(std::initializer_list<int64_t> dims)  // NOLINT: as in TensorFlow
      : TensorShape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}
  explicit TensorShape(absl::Span<const int64_t> dims);

  // Returns INVALID_ARGUMENT if the dimensions are not valid.
  static absl::StatusOr<TensorShape> Make(absl::Span<const int64_t> dims);
  static absl::StatusOr<TensorShape> Make(const TensorShapeProto& proto);
  void AsProto(TensorShapeProto* proto) const;

  // Returns false after an operation that had no valid result.
  bool IsValid() const { return valid_; }
  // The number of dimensions.
  int dims() const { return static_cast<int>(dims_.size()); }
  // REQUIRES: 0 <= d < dims()
  int64_t dim_size(int d) const { return dims_[d]; }
  absl::Span<const int64_t> dim_sizes() const { return dims_; }
  int64_t num_elements() const { return num_elements_; }

  // Change the dimensions. An invalid argument or result makes the shape invalid.
  void AddDim(int64_t size);
  void InsertDim(int d, int64_t size);
  void RemoveDim(int d);
  void set_dim(int d, int64_t size);
  void AppendShape(const TensorShape& shape);

  // Returns true if all dimensions are equal.
  bool IsSameSize(const TensorShape& other) const { return *this == other; }
  friend bool operator==(const TensorShape& a, const TensorShape& b) {
    return a.dims_ == b.dims_ && a.valid_ == b.valid_;
  }
  friend bool operator!=(const TensorShape& a, const TensorShape& b) { return !(a == b); }

  // Returns "[2,3]"; "[]" for a scalar.
  std::string DebugString() const;

 private:
  void Update();

  DimVector dims_;
  int64_t num_elements_ = 1;
  bool valid_ = true;
};

// A shape whose rank, or some of whose dimensions (-1), may be unknown.
class PartialTensorShape {
 public:
  // A shape of unknown rank.
  PartialTensorShape() = default;
  PartialTensorShape(std::initializer_list<int64_t> dims)  // NOLINT: as in TensorFlow
      : PartialTensorShape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}
  explicit PartialTensorShape(absl::Span<const int64_t> dims);
  PartialTensorShape(const TensorShape& shape);  // NOLINT: a known shape is a partial one

  // Returns INVALID_ARGUMENT if a dimension is less than -1, if there are more than kMaxDims
  // dimensions, or if the product of the known ones exceeds int64.
  static absl::StatusOr<PartialTensorShape> Make(absl::Span<const int64_t> dims);
  static absl::StatusOr<PartialTensorShape> Make(const TensorShapeProto& proto);
  static PartialTensorShape UnknownOfRank(int rank);
  void AsProto(TensorShapeProto* proto) const;

  // Returns true if not even the rank is known.
  bool unknown_rank() const { return unknown_rank_; }
  // Returns the number of dimensions, or -1 if the rank is unknown.
  int dims() const { return unknown_rank_ ? -1 : static_cast<int>(dims_.size()); }
  // Returns the size of dimension d, or -1 if unknown. REQUIRES: 0 <= d < dims()
  int64_t dim_size(int d) const { return dims_[d]; }
  absl::Span<const int64_t> dim_sizes() const { return dims_; }
  void set_dim(int d, int64_t size) { dims_[d] = size; }
  void AddDim(int64_t size);
  // Returns -1 if any dimension is unknown or the product exceeds int64.
  int64_t num_elements() const;

  // Returns true if the rank and all dimensions are known.
  bool IsFullyDefined() const;
  // Returns false and writes nothing unless the shape is fully defined.
  bool AsTensorShape(TensorShape* shape) const;
  bool IsCompatibleWith(const PartialTensorShape& other) const;
  // Returns the shape whose dimensions are known if they are known in either shape;
  // INVALID_ARGUMENT if the two are not compatible.
  absl::StatusOr<PartialTensorShape> MergeWith(const PartialTensorShape& other) const;

  // Returns true if both have the same known and unknown dimensions.
  friend bool operator==(const PartialTensorShape& a, const PartialTensorShape& b) {
    return a.unknown_rank_ == b.unknown_rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const PartialTensorShape& a, const PartialTensorShape& b) {
    return !(a == b);
  }

  // Returns "[2,?]"; "<unknown>" if the rank is unknown.
  std::string DebugString() const;

 private:
  DimVector dims_;
  bool unknown_rank_ = true;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_SHAPE_H_
