// Tensor: an n-dimensional array of elements of one DataType, in row-major order.
//
// A tensor is a handle to reference-counted elements. Copying a tensor is cheap and shares the
// elements. Allocated elements are aligned to 64 bytes. The elements of a slice and of the caller's
// memory (FromMemory) are aligned only for their type.
//
// Thread safety: copies may be used and destroyed on different threads. Writing elements that
// another thread reads or writes requires external synchronization.
//
//   Tensor t(DT_FLOAT, {2, 3});
//   t.flat<float>().setZero();
//   t.matrix<float>()(1, 2) = 5;
//   std::cout << t.DebugString();
#ifndef GRADFLOW_CORE_TENSOR_H_
#define GRADFLOW_CORE_TENSOR_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/tensor_view.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class TensorProto;

namespace internal {

// Reference-counted memory that tensors share. The last Unref() frees it.
class TensorBuffer {
 public:
  virtual ~TensorBuffer() = default;
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    // If the count is 1, the caller has the only reference, and no other thread can add a
    // reference.
    if (RefCountIsOne() || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
  }
  bool RefCountIsOne() const { return refs_.load(std::memory_order_acquire) == 1; }

  void* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }
  // Sets the bytes that are charged to the allocator in addition to the elements. Returns false if
  // they exceed the allocator's limit.
  virtual bool Reserve(size_t bytes);
  // Returns true if the memory comes from `allocator`.
  virtual bool IsOf(const Allocator& allocator) const;

 protected:
  TensorBuffer(void* data, size_t size, bool writable)
      : writable_(writable), data_(data), size_(size) {}
  virtual void Free() = 0;

 private:
  std::atomic<int> refs_{1};
  bool writable_;
  void* data_;
  size_t size_;
};

// Eigen's view of the elements. Defined in compat/tensorflow/core/framework/tensor_types.h.
template <typename T, int N>
struct EigenView;
template <typename T>
struct EigenScalar;

}  // namespace internal

// The return type of Tensor::tensor<T, N>(): a view with N dimensions. A program that links
// gradflow::tensorflow_compat gets Eigen's tensors instead, if the installed gradflow supports
// them. Both kinds of programs can link the same library: the type is part of the mangled names of
// the functions below, so the two definitions do not clash.
#ifdef GRADFLOW_EIGEN_VIEWS
template <typename T, int N>
using ViewOf = typename internal::EigenView<T, N>::Type;
// The type of scalar<T>().
template <typename T>
using ScalarViewOf = typename internal::EigenScalar<T>::Type;
#else
template <typename T, int N>
using ViewOf = TensorView<T, N>;
// The type of scalar<T>().
template <typename T>
using ScalarViewOf = TensorView<T, 0>;
#endif

class Tensor {
 public:
  // A float tensor of shape [0], as in TensorFlow.
  Tensor() : shape_({0}) {}
  // A tensor of shape [0].
  explicit Tensor(DataType dtype) : dtype_(dtype), shape_({0}) {}
  // Allocates elements without initializing them, except that strings and variants are empty.
  // IsInitialized() is false if memory runs out or `dtype` or `shape` is not valid for a tensor.
  // Allocate() returns the reason.
  Tensor(DataType dtype, const TensorShape& shape);
  Tensor(const std::shared_ptr<Allocator>& allocator, DataType dtype, const TensorShape& shape);
  // Overload that does not own `allocator`. REQUIRES: `allocator` outlives the tensor's memory
  Tensor(Allocator* allocator, DataType dtype, const TensorShape& shape)
      : Tensor(std::shared_ptr<Allocator>(std::shared_ptr<Allocator>(), allocator), dtype, shape) {}
  // A scalar.
  template <typename T, DataType = DataTypeToEnum<T>::value>
  explicit Tensor(const T& scalar) : Tensor(DataTypeToEnum<T>::value, TensorShape()) {
    if (data_ != nullptr) *static_cast<T*>(data_) = scalar;
  }
  explicit Tensor(const char* scalar) : Tensor(tstring(scalar)) {}

  // Copies share the elements.
  Tensor(const Tensor& other)
      : dtype_(other.dtype_), shape_(other.shape_), buffer_(other.buffer_), data_(other.data_) {
    if (buffer_ != nullptr) buffer_->Ref();
  }
  Tensor(Tensor&& other) noexcept
      : dtype_(other.dtype_),
        shape_(std::move(other.shape_)),
        buffer_(std::exchange(other.buffer_, nullptr)),
        data_(std::exchange(other.data_, nullptr)) {
    if (std::exchange(other.borrows_, false) && buffer_ != nullptr) buffer_->Ref();
  }
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this == &other) return *this;
    if (std::exchange(other.borrows_, false) && other.buffer_ != nullptr) other.buffer_->Ref();
    Drop();
    dtype_ = other.dtype_;
    shape_ = std::move(other.shape_);
    buffer_ = std::exchange(other.buffer_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    borrows_ = false;
    return *this;
  }
  ~Tensor() { Drop(); }
  // A tensor of type DT_INVALID without elements: an output before its kernel sets it.
  struct Unset {};
  explicit Tensor(Unset) noexcept : dtype_(DT_INVALID) {}
  // A borrowed copy: it holds no reference to the elements, and CanBeReused() is false. A copy of a
  // borrowed copy is an ordinary tensor. REQUIRES: `other` outlives the borrowed copy
  struct Borrow {};
  Tensor(Borrow, const Tensor& other)
      : dtype_(other.dtype_),
        borrows_(true),
        shape_(other.shape_),
        buffer_(other.buffer_),
        data_(other.data_) {}

  // Returns a tensor with uninitialized elements. Returns INVALID_ARGUMENT if the type or shape is
  // not valid for a tensor, RESOURCE_EXHAUSTED if out of memory.
  static absl::StatusOr<Tensor> Allocate(const std::shared_ptr<Allocator>& allocator,
                                         DataType dtype, const TensorShape& shape);
  static absl::StatusOr<Tensor> Allocate(DataType dtype, const TensorShape& shape) {
    return Allocate(SystemAllocator(), dtype, shape);
  }
  // TensorFlow's name for Allocate().
  static absl::Status BuildTensor(DataType dtype, const TensorShape& shape, Tensor* out);
  // Returns a tensor over memory of the caller. Calls `release` when no tensor uses the memory any
  // more. Kernels write to the memory only if `writable`. Calls `release` and returns
  // INVALID_ARGUMENT if the type is not plain bytes, the shape is not valid, or `data` is not
  // aligned for the type.
  static absl::StatusOr<Tensor> FromMemory(DataType dtype, const TensorShape& shape, void* data,
                                           bool writable, std::function<void()> release);

  // The element type, the shape, and the number of elements.
  DataType dtype() const { return dtype_; }
  const TensorShape& shape() const { return shape_; }
  int dims() const { return shape_.dims(); }
  int64_t dim_size(int d) const { return shape_.dim_size(d); }
  int64_t NumElements() const { return shape_.num_elements(); }
  // Returns the size of the elements in bytes, including the characters of strings, but without the
  // values of variants.
  size_t TotalBytes() const;
  // Returns TotalBytes(): allocators do not track the sizes of blocks.
  size_t AllocatedBytes() const { return TotalBytes(); }
  bool IsInitialized() const {
    return shape_.IsValid() && (data_ != nullptr || NumElements() == 0);
  }
  bool IsSameSize(const Tensor& other) const { return shape_ == other.shape_; }
  // Returns true if both tensors refer to the same buffer, or to parts of it.
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_ != nullptr && buffer_ == other.buffer_;
  }
  // Returns true if the elements may be overwritten: this tensor holds the only reference to its
  // buffer, and the buffer is writable.
  bool CanBeReused() const {
    return buffer_ != nullptr && !borrows_ && buffer_->writable() && buffer_->RefCountIsOne();
  }
  // TensorFlow's name for CanBeReused().
  bool RefCountIsOne() const { return CanBeReused(); }
  // Returns true if the tensor covers its whole buffer and the buffer comes from `allocator`. Also
  // returns true if the tensor has no buffer.
  bool OwnsBufferOf(const Allocator& allocator) const;
  // Returns true if the elements start at a multiple of 64 bytes. Slices may start anywhere.
  bool IsAligned() const { return reinterpret_cast<uintptr_t>(data_) % Allocator::kAlignment == 0; }

  // Returns rows [start, limit) of dimension 0, sharing the elements. The range is clamped to the
  // rows that exist. A slice of a scalar is the scalar.
  Tensor Slice(int64_t start, int64_t limit) const;
  // Returns row `index` of dimension 0 without that dimension, sharing the elements. The result is
  // not initialized if the row does not exist.
  Tensor SubSlice(int64_t index) const;
  // Makes this tensor share the elements of `other`, with shape `shape`. Returns false and changes
  // nothing if the numbers of elements differ, `shape` is not valid, or `other` is not initialized.
  bool CopyFrom(const Tensor& other, const TensorShape& shape);
  // Like CopyFrom, but takes over the reference of `other`. `other` becomes a borrowed copy: it
  // stays readable while this tensor holds the elements. REQUIRES: other->CanBeReused()
  bool TakeFrom(Tensor* other, const TensorShape& shape) {
    if (!shape.IsValid() || shape.num_elements() != other->NumElements()) return false;
    Drop();
    dtype_ = other->dtype_;
    shape_ = shape;
    buffer_ = other->buffer_;
    data_ = other->data_;
    borrows_ = false;
    other->borrows_ = true;
    return true;
  }
  absl::StatusOr<Tensor> Reshaped(const TensorShape& shape) const;
  // Makes this tensor share the bytes of `other`, as elements of another type and shape. Returns
  // INVALID_ARGUMENT and changes nothing if the sizes in bytes differ, a type is not plain bytes,
  // or the elements are not aligned for `dtype`.
  absl::Status BitcastFrom(const Tensor& other, DataType dtype, const TensorShape& shape);
  // Like BitcastFrom(), but leaves the tensor uninitialized on error. TensorFlow's function ends
  // the program on error.
  void UnsafeCopyFromInternal(const Tensor& other, DataType dtype, const TensorShape& shape);
  // Returns a tensor that shares no elements with this one.
  absl::StatusOr<Tensor> DeepCopy() const;

  // ---- Typed views of the elements ----
  //
  // If T is not the element type or the rank does not match, the view is empty. With Eigen's views,
  // the program ends instead, as in TensorFlow.

  template <typename T, int N>
  ViewOf<T, N> tensor() {
    return View<T, N>(shape_.dim_sizes(), data_);
  }
  template <typename T, int N>
  ViewOf<const T, N> tensor() const {
    return View<const T, N>(shape_.dim_sizes(), data_);
  }
  template <typename T>
  ScalarViewOf<T> scalar() {
    return ScalarView<T>();
  }
  template <typename T>
  ScalarViewOf<const T> scalar() const {
    return ScalarView<const T>();
  }
  template <typename T>
  ViewOf<T, 1> vec() {
    return tensor<T, 1>();
  }
  template <typename T>
  ViewOf<const T, 1> vec() const {
    return tensor<T, 1>();
  }
  template <typename T>
  ViewOf<T, 2> matrix() {
    return tensor<T, 2>();
  }
  template <typename T>
  ViewOf<const T, 2> matrix() const {
    return tensor<T, 2>();
  }
  template <typename T>
  ViewOf<T, 1> flat() {
    return View<T, 1>({NumElements()}, data_);
  }
  template <typename T>
  ViewOf<const T, 1> flat() const {
    return View<const T, 1>({NumElements()}, data_);
  }
  // A view of shape `dims`; empty if the numbers of elements differ.
  template <typename T, int N>
  ViewOf<T, N> shaped(absl::Span<const int64_t> dims) {
    return CountsMatch(dims) ? View<T, N>(dims, data_) : NoView<T, N>(dims);
  }
  template <typename T, int N>
  ViewOf<const T, N> shaped(absl::Span<const int64_t> dims) const {
    return CountsMatch(dims) ? View<const T, N>(dims, data_) : NoView<const T, N>(dims);
  }
  // TensorFlow's names for flat() and shaped() on unaligned memory. Here both names accept any
  // alignment.
  template <typename T>
  ViewOf<T, 1> unaligned_flat() {
    return flat<T>();
  }
  template <typename T>
  ViewOf<const T, 1> unaligned_flat() const {
    return flat<T>();
  }
  template <typename T, int N>
  ViewOf<T, N> unaligned_shaped(absl::Span<const int64_t> dims) {
    return shaped<T, N>(dims);
  }
  template <typename T, int N>
  ViewOf<const T, N> unaligned_shaped(absl::Span<const int64_t> dims) const {
    return shaped<T, N>(dims);
  }
  // A view with N dimensions that keeps the last N - 1 dimensions and flattens the others into one.
  // Prepends ones if the rank is less than N.
  template <typename T, int N = 2>
  ViewOf<T, N> flat_inner_dims() {
    return View<T, N>(InnerDims(N), data_);
  }
  template <typename T, int N = 2>
  ViewOf<const T, N> flat_inner_dims() const {
    return View<const T, N>(InnerDims(N), data_);
  }
  // A view with N dimensions that keeps the first N - 1 dimensions and flattens the others into
  // one. Appends ones if the rank is less than N.
  template <typename T, int N = 2>
  ViewOf<T, N> flat_outer_dims() {
    return View<T, N>(OuterDims(N), data_);
  }
  template <typename T, int N = 2>
  ViewOf<const T, N> flat_outer_dims() const {
    return View<const T, N>(OuterDims(N), data_);
  }
  // A view with N dimensions that flattens the first `begin` + 1 dimensions into its first, and the
  // dimensions from `begin` + N - 1 on into its last. Prepends ones if `begin` is negative. Appends
  // ones if the rank is too small.
  template <typename T, int N = 3>
  ViewOf<T, N> flat_inner_outer_dims(int64_t begin) {
    return View<T, N>(InnerOuterDims(N, begin), data_);
  }
  template <typename T, int N = 3>
  ViewOf<const T, N> flat_inner_outer_dims(int64_t begin) const {
    return View<const T, N>(InnerOuterDims(N, begin), data_);
  }
  // Views of the bytes of the elements as elements of type T, with this tensor's shape or another
  // shape. A view is also empty if the sizes in bytes differ, a type is not plain bytes, or the
  // elements are not aligned for T.
  template <typename T, int N>
  ViewOf<T, N> bit_casted_tensor() {
    return BitcastView<T, N>(shape_.dim_sizes());
  }
  template <typename T, int N>
  ViewOf<const T, N> bit_casted_tensor() const {
    return BitcastView<const T, N>(shape_.dim_sizes());
  }
  template <typename T, int N>
  ViewOf<T, N> bit_casted_shaped(absl::Span<const int64_t> dims) {
    return BitcastView<T, N>(dims);
  }
  template <typename T, int N>
  ViewOf<const T, N> bit_casted_shaped(absl::Span<const int64_t> dims) const {
    return BitcastView<const T, N>(dims);
  }
  // A view without the last dimension, which a single element of type T covers. N is dims() - 1.
  // The view is empty if the last dimension does not have sizeof(T) bytes, or under the conditions
  // of bit_casted_tensor().
  template <typename T, int N>
  ViewOf<T, N> reinterpret_last_dimension() {
    return BitcastView<T, N>(DimsWithoutLast());
  }
  template <typename T, int N>
  ViewOf<const T, N> reinterpret_last_dimension() const {
    return BitcastView<const T, N>(DimsWithoutLast());
  }
  // The elements as a span; empty if T is not the element type.
  template <typename T>
  absl::Span<T> span() {
    return HasElements<T>() ? absl::MakeSpan(static_cast<T*>(data_), NumElements())
                            : absl::Span<T>();
  }
  template <typename T>
  absl::Span<const T> span() const {
    return HasElements<T>() ? absl::MakeSpan(static_cast<const T*>(data_), NumElements())
                            : absl::Span<const T>();
  }

  // The bytes of the elements; may be nullptr if there are no elements. Not meaningful for strings.
  const void* raw_data() const { return data_; }
  void* raw_data() { return data_; }
  void* data() const { return data_; }
  absl::string_view tensor_data() const;

  // ---- TensorProto ----

  // Writes the elements to the typed list (float_val, ...). AsProtoTensorContent writes them to
  // tensor_content, as bytes; strings go to string_val.
  void AsProtoField(TensorProto* proto) const;
  void AsProtoTensorContent(TensorProto* proto) const;
  // Returns false and changes nothing if `proto` is not valid or memory runs out. TensorFromProto()
  // returns the reason.
  [[nodiscard]] bool FromProto(const TensorProto& proto);

  // Charges characters of strings to the tensor's allocator: the characters that the strings have
  // now, or `bytes` characters that are about to be written. Replaces the previous charge. Returns
  // RESOURCE_EXHAUSTED if the charge exceeds the allocator's limit. Does nothing for types other
  // than DT_STRING.
  // REQUIRES: CanBeReused(), and this tensor covers its whole buffer
  absl::Status ChargeStrings();
  absl::Status ChargeStrings(size_t bytes);
  // Like ChargeStrings(bytes), for variants that were read from a TensorProto and may keep their
  // encoded values. The code that makes other variants charges their memory.
  absl::Status ChargeVariants(size_t bytes);
  // Returns the total number of characters of the strings.
  size_t StringBytes() const;

  // ---- Printing ----

  // Returns the first `max_entries` elements, nested by dimension: "[1 2][3 4]". "..." stands for
  // further elements, and for the characters of a string beyond the first 200. Returns all elements
  // if `max_entries` is negative. With `print_v2`, prints like NumPy: up to `max_entries` elements
  // at each end of each dimension, "[1 ... 4]", and strings with quotes.
  std::string SummarizeValue(int64_t max_entries, bool print_v2 = false) const;
  // "Tensor<type: float shape: [2] values: 1 2>"
  std::string DebugString(int64_t max_entries = 3) const;
  // Returns DebugString() without the values.
  std::string DeviceSafeDebugString() const;

 private:
  // Takes ownership of one reference to `buffer`.
  Tensor(DataType dtype, const TensorShape& shape, internal::TensorBuffer* buffer, void* data)
      : dtype_(dtype), shape_(shape), buffer_(buffer), data_(data) {}

#ifdef GRADFLOW_EIGEN_VIEWS
  template <typename T, int N>
  ViewOf<T, N> View(absl::Span<const int64_t> dims, void* data) const {
    return internal::EigenView<T, N>::Make(*this, dims, data);
  }
  template <typename T>
  ScalarViewOf<T> ScalarView() const {
    return internal::EigenScalar<T>::Make(*this, data_);
  }
  // Ends the program.
  template <typename T, int N>
  ViewOf<T, N> NoView(absl::Span<const int64_t> dims) const {
    return internal::EigenView<T, N>::Mismatch(*this, dims);
  }
#else
  template <typename T, int N>
  TensorView<T, N> View(absl::Span<const int64_t> dims, void* data) const {
    if (dtype_ != DataTypeToEnum<std::remove_const_t<T>>::value || dims.size() != N ||
        !IsInitialized()) {
      return TensorView<T, N>();
    }
    std::array<int64_t, N> sizes{};
    for (int d = 0; d < N; ++d) sizes[d] = dims[d];
    return TensorView<T, N>(static_cast<T*>(data), sizes);
  }
  template <typename T>
  TensorView<T, 0> ScalarView() const {
    return NumElements() == 1 ? View<T, 0>({}, data_) : TensorView<T, 0>();
  }
  template <typename T, int N>
  TensorView<T, N> NoView(absl::Span<const int64_t>) const {
    return TensorView<T, N>();
  }
#endif
  // A view of the elements of this tensor after BitcastFrom().
  template <typename T, int N>
  ViewOf<T, N> BitcastView(absl::Span<const int64_t> dims) const {
    Tensor cast;
    constexpr DataType kType = DataTypeToEnum<std::remove_const_t<T>>::value;
    if (!cast.BitcastFrom(*this, kType, TensorShape(dims)).ok()) return NoView<T, N>(dims);
    return cast.View<T, N>(dims, data_);
  }
  template <typename T>
  bool HasElements() const {
    return dtype_ == DataTypeToEnum<T>::value && data_ != nullptr && IsInitialized();
  }
  bool CountsMatch(absl::Span<const int64_t> dims) const;
  absl::Span<const int64_t> DimsWithoutLast() const {
    const absl::Span<const int64_t> dims = shape_.dim_sizes();
    return dims.subspan(0, dims.empty() ? 0 : dims.size() - 1);
  }
  DimVector InnerDims(int n) const;
  DimVector OuterDims(int n) const;
  DimVector InnerOuterDims(int n, int64_t begin) const;

  void Drop() {
    if (buffer_ != nullptr && !borrows_) buffer_->Unref();
  }

  DataType dtype_ = DT_FLOAT;
  // True if another tensor holds the reference to the buffer. Copies hold their own references.
  bool borrows_ = false;
  TensorShape shape_;
  // Null if the tensor was made without elements. The data_ of a slice points into the buffer that
  // the slice shares.
  internal::TensorBuffer* buffer_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_H_
