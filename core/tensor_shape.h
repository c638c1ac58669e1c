// Shapes of tensors: TensorShape (all dimensions known) and PartialTensorShape (dimensions or the
// rank may be unknown, as in shape inference). Both are value types.
//
// A shape has at most kMaxDims dimensions, none negative, and their product fits in an int64. Make
// returns an error if its arguments violate this; use it for shapes that come from data. Other
// operations make the shape invalid instead: IsValid() is false, num_elements() is 0, and a tensor
// of that shape is not initialized. An invalid shape stays invalid.
#ifndef GRADFLOW_CORE_TENSOR_SHAPE_H_
#define GRADFLOW_CORE_TENSOR_SHAPE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tensorflow {
class TensorShapeTestHelper;
}  // namespace tensorflow

#pragma GCC visibility push(default)
namespace gradflow {

class PartialTensorShape;
class TensorShape;
class TensorShapeProto;

// The maximum rank, as in TensorFlow.
inline constexpr int kMaxDims = 254;

// Returns a * b, or -1 if an operand is negative or the product exceeds int64.
int64_t MultiplyWithoutOverflow(int64_t a, int64_t b);

// Sizes of dimensions.
using DimVector = absl::InlinedVector<int64_t, 4>;

namespace internal {

// Prints "gradflow: TensorShape::dim_size(7): index out of range, expected at least 0 and less than
// 2" and ends the program.
[[noreturn]] void IndexOutOfRange(const char* function, int64_t index, int64_t size);

// Ends the program unless 0 <= index < size. For functions whose callers must check the index.
inline void RequireIndex(const char* function, int64_t index, int64_t size) {
  if (index < 0 || index >= size) IndexOutOfRange(function, index, size);
}

// The dimensions of a shape. If there are more than four, copies share one array until they are
// changed, so that a copy takes constant memory for any rank. A move is a copy.
//
// Thread safety: like int; different threads may use copies.
class Dims {
 public:
  Dims() = default;
  explicit Dims(absl::Span<const int64_t> dims);
  Dims(const Dims& other) noexcept : size_(other.size_), few_(other.few_) {
    if (IsShared()) array_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Dims& operator=(const Dims& other) noexcept {
    if (other.IsShared()) other.array_->refs.fetch_add(1, std::memory_order_relaxed);
    if (IsShared()) Unref();
    size_ = other.size_;
    few_ = other.few_;
    return *this;
  }
  ~Dims() {
    if (IsShared()) Unref();
  }

  size_t size() const { return static_cast<size_t>(size_); }
  const int64_t* data() const { return IsShared() ? array_->sizes() : few_.data(); }
  int64_t operator[](size_t d) const { return data()[d]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  // Sets dimension d. REQUIRES: d < size()
  void Set(size_t d, int64_t size);
  // Returns true if both share an array.
  bool SharesWith(const Dims& other) const { return IsShared() && other.array_ == array_; }
  // Returns the bytes of the array; 0 for up to four dimensions.
  size_t HeapBytes() const;

  friend bool operator==(const Dims& a, const Dims& b) {
    return a.size_ == b.size_ && (a.SharesWith(b) || std::equal(a.begin(), a.end(), b.begin()));
  }

 private:
  static constexpr int kFew = 4;

  // The sizes follow the header.
  struct Array {
    int64_t* sizes() { return reinterpret_cast<int64_t*>(this + 1); }
    std::atomic<int64_t> refs{1};
  };

  bool IsShared() const { return size_ > kFew; }
  void Unref();
  static Array* MakeArray(absl::Span<const int64_t> dims);

  int64_t size_ = 0;
  union {
    std::array<int64_t, kFew> few_ = {};
    Array* array_;
  };
};

// Dimensions of a shape. Converts to a span, and to a vector that owns the sizes.
class DimSizes {
 public:
  using value_type = int64_t;
  using size_type = size_t;
  using iterator = const int64_t*;
  using const_iterator = const int64_t*;
  using const_reference = const int64_t&;

  DimSizes(const int64_t* data, size_t size) : span_(data, size) {}
  template <size_t N>
  operator absl::InlinedVector<int64_t, N>() const {  // NOLINT: as in TensorFlow
    return absl::InlinedVector<int64_t, N>(begin(), end());
  }
  // Members of absl::Span.
  const int64_t* data() const { return span_.data(); }
  size_t size() const { return span_.size(); }
  bool empty() const { return span_.empty(); }
  const int64_t* begin() const { return span_.begin(); }
  const int64_t* end() const { return span_.end(); }
  const int64_t& operator[](size_t d) const { return span_[d]; }
  const int64_t& front() const { return span_.front(); }
  const int64_t& back() const { return span_.back(); }
  absl::Span<const int64_t> subspan(size_t begin, size_t size = absl::Span<int>::npos) const {
    return span_.subspan(begin, size);
  }
  absl::Span<const int64_t> first(size_t size) const { return span_.first(size); }
  absl::Span<const int64_t> last(size_t size) const { return span_.last(size); }

  friend bool operator==(const DimSizes& a, const DimSizes& b) { return a.span_ == b.span_; }
  friend bool operator!=(const DimSizes& a, const DimSizes& b) { return a.span_ != b.span_; }
  using Span = absl::Span<const int64_t>;
  friend bool operator==(const DimSizes& a, Span b) { return a.span_ == b; }
  friend bool operator!=(const DimSizes& a, Span b) { return a.span_ != b; }
  friend bool operator==(Span a, const DimSizes& b) { return a == b.span_; }
  friend bool operator!=(Span a, const DimSizes& b) { return a != b.span_; }

 private:
  absl::Span<const int64_t> span_;
};

// The members of TensorFlow's shapes that gradflow itself does not need. Shape is TensorShape or
// PartialTensorShape. Functions that return a status leave the shape unchanged on error:
// INVALID_ARGUMENT for a size, INTERNAL for a position (INVALID_ARGUMENT in SetDimWithStatus()).
template <typename Shape>
class ShapeInterface {
 public:
  static constexpr int MaxDimensions() { return kMaxDims; }

  absl::Status AddDimWithStatus(int64_t size);
  absl::Status InsertDimWithStatus(int d, int64_t size);
  absl::Status SetDimWithStatus(int d, int64_t size);
  absl::Status AppendShapeWithStatus(const Shape& shape);
  absl::Status RemoveDimWithStatus(int64_t d);
  absl::Status RemoveLastDimsWithStatus(int64_t n);
  // Removes dimensions [begin, end). A negative position -n stands for dims() + 1 - n.
  absl::Status RemoveDimRangeWithStatus(int begin, int end);
  // Return no status. On error, a TensorShape becomes invalid, a PartialTensorShape is unchanged.
  void RemoveLastDims(int n);
  void RemoveDimRange(int begin, int end);
  void InsertDim(int d, int64_t size) { InsertDimWithStatus(d, size).IgnoreError(); }
  void RemoveDim(int d) { RemoveDimWithStatus(d).IgnoreError(); }
  void AppendShape(const Shape& shape) { AppendShapeWithStatus(shape).IgnoreError(); }

  // Make a shape, or return INVALID_ARGUMENT. Unlike Make(), a TensorShape treats a message of
  // unknown rank like a message without dimensions.
  static absl::Status BuildTensorShapeBase(absl::Span<const int64_t> dims, Shape* out);
  static absl::Status BuildTensorShapeBase(std::initializer_list<int64_t> dims, Shape* out) {
    return BuildTensorShapeBase(absl::Span<const int64_t>(dims.begin(), dims.size()), out);
  }
  static absl::Status BuildTensorShapeBase(const TensorShapeProto& proto, Shape* out);
  static absl::Status IsValidShape(const TensorShapeProto& proto);
  static bool IsValid(const TensorShapeProto& proto) { return IsValidShape(proto).ok(); }
  TensorShapeProto AsProto() const;
  // Returns the text of a message, "[2,?]" or "<unknown>". The message need not be valid.
  static std::string DebugString(const TensorShapeProto& proto);

  // Iteration over dimensions: `for (const auto& dim : shape) use(dim.size)`.
  struct Dim {
    int64_t size;
  };
  class Iterator {
   public:
    explicit Iterator(const int64_t* size) : size_(size) {}
    Dim operator*() const { return Dim{*size_}; }
    Iterator& operator++() { return ++size_, *this; }
    friend bool operator==(Iterator a, Iterator b) { return a.size_ == b.size_; }
    friend bool operator!=(Iterator a, Iterator b) { return a.size_ != b.size_; }

   private:
    const int64_t* size_;
  };
  // Valid as long as the shape does not change.
  Iterator begin() const { return Iterator(self().dim_sizes().data()); }
  Iterator end() const { return Iterator(self().dim_sizes().data() + self().dim_sizes().size()); }

 private:
  const Shape& self() const { return static_cast<const Shape&>(*this); }
  // Sets the dimensions, if they are valid.
  absl::Status Set(absl::Span<const int64_t> dims);
};

extern template class ShapeInterface<TensorShape>;
extern template class ShapeInterface<PartialTensorShape>;

// Eigen's sizes. Defined in compat/tensorflow/core/framework/tensor_shape.h.
template <int N, typename Index>
struct EigenSizes;

}  // namespace internal

class TensorShape : public internal::ShapeInterface<TensorShape> {
 public:
  // A scalar: no dimensions, one element. Not defaulted: `const TensorShape shape;` must compile,
  // as with TensorFlow.
  TensorShape() {}
  TensorShape(std::initializer_list<int64_t> dims)  // NOLINT: as in TensorFlow
      : TensorShape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}
  explicit TensorShape(absl::Span<const int64_t> dims);
  // The shape is invalid if the message is invalid.
  explicit TensorShape(const TensorShapeProto& proto);

  // Returns INVALID_ARGUMENT if the dimensions are not valid.
  static absl::StatusOr<TensorShape> Make(absl::Span<const int64_t> dims);
  static absl::StatusOr<TensorShape> Make(const TensorShapeProto& proto);
  // BuildTensorShapeBase, by its other name in TensorFlow.
  template <typename Dims>
  static absl::Status BuildTensorShape(const Dims& dims, TensorShape* out) {
    return BuildTensorShapeBase(dims, out);
  }
  static absl::Status BuildTensorShape(std::initializer_list<int64_t> dims, TensorShape* out) {
    return BuildTensorShapeBase(dims, out);
  }
  static absl::StatusOr<TensorShape> BuildTensorShape(const TensorShapeProto& proto);
  using ShapeInterface::AsProto;
  void AsProto(TensorShapeProto* proto) const;

  // Returns false after an operation without a valid result.
  using ShapeInterface::IsValid;
  bool IsValid() const { return valid_; }
  // The counterparts of PartialTensorShape's members.
  bool unknown_rank() const { return false; }
  bool IsFullyDefined() const { return true; }
  // The number of dimensions.
  int dims() const { return static_cast<int>(dims_.size()); }
  // REQUIRES: 0 <= d < dims(). Otherwise ends the program.
  int64_t dim_size(int d) const {
    internal::RequireIndex("TensorShape::dim_size", d, dims());
    return dims_[static_cast<size_t>(d)];
  }
  // Valid as long as the shape does not change.
  internal::DimSizes dim_sizes() const { return {dims_.data(), dims_.size()}; }
  int64_t num_elements() const { return num_elements_; }

  // Change the dimensions. An invalid argument or result makes the shape invalid.
  void AddDim(int64_t size);
  void InsertDim(int d, int64_t size);
  void RemoveDim(int d);
  void set_dim(int d, int64_t size);
  void AppendShape(const TensorShape& shape);
  // Makes it a scalar.
  void Clear() { *this = TensorShape(); }

  // Eigen::DSizes of N dimensions. "WithPadding" appends ones. Callers must include
  // compat/tensorflow/core/framework/tensor_shape.h.
  template <int N, typename Index = std::ptrdiff_t>
  auto AsEigenDSizes() const {
    return internal::EigenSizes<N, Index>::Make(*this);
  }
  template <int N, typename Index = std::ptrdiff_t>
  auto AsEigenDSizesWithPadding() const {
    return internal::EigenSizes<N, Index>::MakePadded(*this);
  }
  template <int N, typename Index = std::ptrdiff_t, typename Sizes>
  absl::Status AsEigenDSizesWithStatus(Sizes* out) const {
    return internal::EigenSizes<N, Index>::Make(*this, out);
  }
  template <int N, typename Index = std::ptrdiff_t, typename Sizes>
  absl::Status AsEigenDSizesWithPaddingWithStatus(Sizes* out) const {
    return internal::EigenSizes<N, Index>::MakePadded(*this, out);
  }

  // Returns true if all dimensions are equal.
  bool IsSameSize(const TensorShape& other) const { return *this == other; }
  friend bool operator==(const TensorShape& a, const TensorShape& b) {
    return a.dims_ == b.dims_ && a.valid_ == b.valid_;
  }
  friend bool operator!=(const TensorShape& a, const TensorShape& b) { return !(a == b); }

  // Returns "[2,3]"; "[]" for a scalar.
  using ShapeInterface::DebugString;
  std::string DebugString() const;

 private:
  friend class PartialTensorShape;

  friend class internal::ShapeInterface<TensorShape>;
  // TensorFlow's tensors store their type in the shape, and TensorFlow's tests read it.
  friend class ::tensorflow::TensorShapeTestHelper;
  void set_data_type(int type) { data_type_ = static_cast<uint8_t>(type); }
  int data_type() const { return data_type_; }

  void Update();

  internal::Dims dims_;
  int64_t num_elements_ = 1;
  bool valid_ = true;
  uint8_t data_type_ = 0;
};

// A shape whose rank or dimensions may be unknown. An unknown dimension is -1.
class PartialTensorShape : public internal::ShapeInterface<PartialTensorShape> {
 public:
  // A shape of unknown rank. Not defaulted, like TensorShape().
  PartialTensorShape() {}
  PartialTensorShape(std::initializer_list<int64_t> dims)  // NOLINT: as in TensorFlow
      : PartialTensorShape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}
  explicit PartialTensorShape(absl::Span<const int64_t> dims);
  // The rank is unknown if the message is invalid.
  explicit PartialTensorShape(const TensorShapeProto& proto);
  PartialTensorShape(const TensorShape& shape);  // NOLINT: a known shape is a partial one

  // Returns INVALID_ARGUMENT if a dimension is less than -1, if there are more than kMaxDims
  // dimensions, or if the product of the known dimensions exceeds int64.
  static absl::StatusOr<PartialTensorShape> Make(absl::Span<const int64_t> dims);
  static absl::StatusOr<PartialTensorShape> Make(const TensorShapeProto& proto);
  static PartialTensorShape UnknownOfRank(int rank);
  // BuildTensorShapeBase, by its other names in TensorFlow.
  template <typename Dims>
  static absl::Status BuildPartialTensorShape(const Dims& dims, PartialTensorShape* out) {
    return BuildTensorShapeBase(dims, out);
  }
  static absl::Status BuildPartialTensorShape(std::initializer_list<int64_t> dims,
                                              PartialTensorShape* out) {
    return BuildTensorShapeBase(dims, out);
  }
  static absl::StatusOr<PartialTensorShape> BuildPartialTensorShape(const TensorShapeProto& proto);
  template <typename T>
  static absl::Status MakePartialShape(const T* dims, int n, PartialTensorShape* out) {
    return BuildTensorShapeBase(DimVector(dims, dims + n), out);
  }
  using ShapeInterface::AsProto;
  void AsProto(TensorShapeProto* proto) const;
  // Returns true if the rank is known and the dimensions form a valid shape.
  using ShapeInterface::IsValid;
  bool IsValid() const;

  // Returns true if the rank is unknown.
  bool unknown_rank() const { return unknown_rank_; }
  // Returns the number of dimensions, or -1 if the rank is unknown.
  int dims() const { return unknown_rank_ ? -1 : static_cast<int>(dims_.size()); }
  // Returns the size of dimension d, or -1 if unknown. REQUIRES: 0 <= d < dims(). Otherwise ends
  // the program.
  int64_t dim_size(int d) const {
    internal::RequireIndex("PartialTensorShape::dim_size", d, dims());
    return dims_[static_cast<size_t>(d)];
  }
  // Valid as long as the shape does not change.
  internal::DimSizes dim_sizes() const { return {dims_.data(), dims_.size()}; }
  // REQUIRES: 0 <= d < dims(). Otherwise ends the program.
  void set_dim(int d, int64_t size) {
    internal::RequireIndex("PartialTensorShape::set_dim", d, dims());
    dims_.Set(static_cast<size_t>(d), size);
  }
  void AddDim(int64_t size);
  // Returns -1 if any dimension is unknown or the product exceeds int64.
  int64_t num_elements() const;

  // Returns true if the rank and all dimensions are known.
  bool IsFullyDefined() const;
  // Returns false and writes nothing unless the shape is fully defined and valid.
  bool AsTensorShape(TensorShape* shape) const;
  bool IsCompatibleWith(const PartialTensorShape& other) const;
  // Returns a shape whose dimensions are known if they are known in either shape. Returns
  // INVALID_ARGUMENT if the shapes are not compatible.
  absl::StatusOr<PartialTensorShape> MergeWith(const PartialTensorShape& other) const;
  // Overload that stores the merged shape in *result, which must not be this shape.
  absl::Status MergeWith(const PartialTensorShape& other, PartialTensorShape* result) const;
  bool IsIdenticalTo(const PartialTensorShape& other) const { return *this == other; }
  // Appends a dimension, or the dimensions of a shape. A negative dimension is unknown. If the
  // result is not valid, Concatenate() returns a shape of unknown rank; ConcatenateWithStatus()
  // returns INVALID_ARGUMENT.
  PartialTensorShape Concatenate(int64_t size) const;
  PartialTensorShape Concatenate(const PartialTensorShape& shape) const;
  absl::Status ConcatenateWithStatus(int64_t size, PartialTensorShape* out) const;
  absl::Status ConcatenateWithStatus(const PartialTensorShape& shape,
                                     PartialTensorShape* out) const;

  // Returns true if both have the same known and unknown dimensions.
  friend bool operator==(const PartialTensorShape& a, const PartialTensorShape& b) {
    return a.unknown_rank_ == b.unknown_rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const PartialTensorShape& a, const PartialTensorShape& b) {
    return !(a == b);
  }

  // Makes it a scalar.
  void Clear() { *this = PartialTensorShape(absl::Span<const int64_t>()); }

  // Returns "[2,?]"; "<unknown>" if the rank is unknown.
  using ShapeInterface::DebugString;
  std::string DebugString() const;

  // Returns the bytes of heap memory; copies share them.
  size_t HeapBytes() const { return dims_.HeapBytes(); }

 private:
  friend class internal::ShapeInterface<PartialTensorShape>;

  internal::Dims dims_;
  bool unknown_rank_ = true;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_SHAPE_H_
