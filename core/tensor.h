// Tensor: an n-dimensional array of elements of one DataType, in row-major order.
//
// A tensor is a cheap handle: copying it shares the elements, which are reference-counted and start
// at a multiple of 64 bytes. Copies may be used and dropped on different threads; writing elements
// that another thread reads or writes needs the caller's own synchronisation.
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

// The memory behind tensors that share it. Freed by the last Unref().
class TensorBuffer {
 public:
  virtual ~TensorBuffer() = default;
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
  }
  bool RefCountIsOne() const { return refs_.load(std::memory_order_acquire) == 1; }

  void* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }
  // Makes `bytes` what is reserved of the allocator beside the elements. False if there is no more.
  virtual bool Reserve(size_t bytes);

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

}  // namespace internal

class Tensor {
 public:
  // A float tensor of shape [0], as TensorFlow's.
  Tensor() : shape_({0}) {}
  // Elements are not initialised (strings are empty). If memory is short, or the type has no
  // tensors or the shape is not valid, IsInitialized() is false; Allocate() says why.
  Tensor(DataType dtype, const TensorShape& shape);
  Tensor(const std::shared_ptr<Allocator>& allocator, DataType dtype, const TensorShape& shape);
  // The same of an allocator that outlives the tensor.
  Tensor(Allocator* allocator, DataType dtype, const TensorShape& shape)
      : Tensor(std::shared_ptr<Allocator>(std::shared_ptr<Allocator>(), allocator), dtype, shape) {}
  // A scalar.
  template <typename T, DataType = DataTypeToEnum<T>::value>
  explicit Tensor(const T& scalar) : Tensor(DataTypeToEnum<T>::value, TensorShape()) {
    this->scalar<T>()() = scalar;
  }
  explicit Tensor(const char* scalar) : Tensor(tstring(scalar)) {}

  // A copy shares the elements.
  Tensor(const Tensor& other)
      : dtype_(other.dtype_), shape_(other.shape_), buffer_(other.buffer_), data_(other.data_) {
    if (buffer_ != nullptr) buffer_->Ref();
  }
  Tensor(Tensor&& other) noexcept
      : dtype_(other.dtype_),
        shape_(std::move(other.shape_)),
        buffer_(std::exchange(other.buffer_, nullptr)),
        data_(std::exchange(other.data_, nullptr)) {}
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this == &other) return *this;
    if (buffer_ != nullptr) buffer_->Unref();
    dtype_ = other.dtype_;
    shape_ = std::move(other.shape_);
    buffer_ = std::exchange(other.buffer_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    return *this;
  }
  ~Tensor() {
    if (buffer_ != nullptr) buffer_->Unref();
  }

  // INVALID_ARGUMENT for a type or shape that tensors cannot have, RESOURCE_EXHAUSTED if the
  // memory cannot be had.
  static absl::StatusOr<Tensor> Allocate(const std::shared_ptr<Allocator>& allocator,
                                         DataType dtype, const TensorShape& shape);
  static absl::StatusOr<Tensor> Allocate(DataType dtype, const TensorShape& shape) {
    return Allocate(SystemAllocator(), dtype, shape);
  }
  // A tensor over memory of the caller's, `release` being called when no tensor uses it any more.
  // Kernels do not write to it unless `writable`. INVALID_ARGUMENT (and `release` is called) if
  // the type is not plain bytes, the shape is not valid, or `data` is not aligned for the type.
  static absl::StatusOr<Tensor> FromMemory(DataType dtype, const TensorShape& shape, void* data,
                                           bool writable, std::function<void()> release);

  // The type, the sizes and their product.
  DataType dtype() const { return dtype_; }
  const TensorShape& shape() const { return shape_; }
  int dims() const { return shape_.dims(); }
  int64_t dim_size(int d) const { return shape_.dim_size(d); }
  int64_t NumElements() const { return shape_.num_elements(); }
  // Bytes of the elements; of strings including what they hold on the heap.
  size_t TotalBytes() const;
  bool IsInitialized() const {
    return shape_.IsValid() && (data_ != nullptr || NumElements() == 0);
  }
  bool IsSameSize(const Tensor& other) const { return shape_ == other.shape_; }
  // Whether both are (parts of) the same memory.
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_ != nullptr && buffer_ == other.buffer_;
  }
  // Whether this is the only tensor of its memory and may be written in place.
  bool CanBeReused() const {
    return buffer_ != nullptr && buffer_->writable() && buffer_->RefCountIsOne();
  }
  // A slice may start anywhere; a tensor that is no slice starts at a multiple of 64 bytes.
  bool IsAligned() const { return reinterpret_cast<uintptr_t>(data_) % Allocator::kAlignment == 0; }

  // Rows [start, limit) of dimension 0, sharing the elements. The range is cut to what exists;
  // of a scalar, the scalar itself.
  Tensor Slice(int64_t start, int64_t limit) const;
  // Row `index` of dimension 0, without that dimension; not initialised if there is no such row.
  Tensor SubSlice(int64_t index) const;
  // Makes this `other` with another shape, sharing the elements. False, and nothing changed, if
  // the numbers of elements differ.
  bool CopyFrom(const Tensor& other, const TensorShape& shape);
  absl::StatusOr<Tensor> Reshaped(const TensorShape& shape) const;
  // A tensor with elements of its own.
  absl::StatusOr<Tensor> DeepCopy() const;

  // ---- Elements as typed views: empty views (size 0) if T is not the type or N not the rank ----

  template <typename T, int N>
  TensorView<T, N> tensor() {
    return View<T, N>(shape_.dim_sizes(), data_);
  }
  template <typename T, int N>
  TensorView<const T, N> tensor() const {
    return View<const T, N>(shape_.dim_sizes(), data_);
  }
  template <typename T>
  TensorView<T, 0> scalar() {
    return NumElements() == 1 ? View<T, 0>({}, data_) : TensorView<T, 0>();
  }
  template <typename T>
  TensorView<const T, 0> scalar() const {
    return NumElements() == 1 ? View<const T, 0>({}, data_) : TensorView<const T, 0>();
  }
  template <typename T>
  TensorView<T, 1> vec() {
    return tensor<T, 1>();
  }
  template <typename T>
  TensorView<const T, 1> vec() const {
    return tensor<T, 1>();
  }
  template <typename T>
  TensorView<T, 2> matrix() {
    return tensor<T, 2>();
  }
  template <typename T>
  TensorView<const T, 2> matrix() const {
    return tensor<T, 2>();
  }
  template <typename T>
  TensorView<T, 1> flat() {
    return View<T, 1>({NumElements()}, data_);
  }
  template <typename T>
  TensorView<const T, 1> flat() const {
    return View<const T, 1>({NumElements()}, data_);
  }
  // The elements with other dimensions; empty if the numbers of elements differ.
  template <typename T, int N>
  TensorView<T, N> shaped(absl::Span<const int64_t> dims) {
    return CountsMatch(dims) ? View<T, N>(dims, data_) : TensorView<T, N>();
  }
  template <typename T, int N>
  TensorView<const T, N> shaped(absl::Span<const int64_t> dims) const {
    return CountsMatch(dims) ? View<const T, N>(dims, data_) : TensorView<const T, N>();
  }
  // N dimensions: the last N - 1 as they are, all before them as one. Ones in front if there are
  // fewer than N.
  template <typename T, int N = 2>
  TensorView<T, N> flat_inner_dims() {
    return View<T, N>(InnerDims(N), data_);
  }
  template <typename T, int N = 2>
  TensorView<const T, N> flat_inner_dims() const {
    return View<const T, N>(InnerDims(N), data_);
  }
  // N dimensions: the first N - 1 as they are, all behind them as one. Ones behind if there are
  // fewer than N.
  template <typename T, int N = 2>
  TensorView<T, N> flat_outer_dims() {
    return View<T, N>(OuterDims(N), data_);
  }
  template <typename T, int N = 2>
  TensorView<const T, N> flat_outer_dims() const {
    return View<const T, N>(OuterDims(N), data_);
  }
  // The elements as a span; empty if T is not the type.
  template <typename T>
  absl::Span<T> span() {
    return flat<T>();
  }
  template <typename T>
  absl::Span<const T> span() const {
    return flat<T>();
  }

  // The elements as bytes; nullptr if there are none. Meaningless for strings.
  const void* raw_data() const { return data_; }
  void* raw_data() { return data_; }
  absl::string_view tensor_data() const;

  // ---- TensorProto ----

  // Elements in the typed list (float_val, ...), or, AsProtoTensorContent, as bytes.
  void AsProtoField(TensorProto* proto) const;
  void AsProtoTensorContent(TensorProto* proto) const;
  // False, and nothing changed, if the proto makes no tensor; TensorFromProto says why.
  [[nodiscard]] bool FromProto(const TensorProto& proto);

  // Counts the characters of the strings as memory of the tensor's allocator: those that are there
  // now, or `bytes` that are to come, in place of what was counted before. RESOURCE_EXHAUSTED if it
  // has no more. Of other types there is nothing to count. REQUIRES: CanBeReused(), and all
  // elements of the memory are this tensor's
  absl::Status CountStrings();
  absl::Status CountStrings(size_t bytes);
  // The characters of all strings.
  size_t StringBytes() const;

  // ---- Printing ----

  // The first elements, nested by dimension: "[1 2][3 4]"; "..." where more follow.
  std::string SummarizeValue(int64_t max_entries) const;
  // "Tensor<type: float shape: [2] values: 1 2>"
  std::string DebugString(int64_t max_entries = 3) const;

 private:
  // Takes over a reference to `buffer`.
  Tensor(DataType dtype, const TensorShape& shape, internal::TensorBuffer* buffer, void* data)
      : dtype_(dtype), shape_(shape), buffer_(buffer), data_(data) {}

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
  bool CountsMatch(absl::Span<const int64_t> dims) const;
  DimVector InnerDims(int n) const;
  DimVector OuterDims(int n) const;

  DataType dtype_ = DT_FLOAT;
  TensorShape shape_;
  // Null if there are no elements. Slices share the buffer of the whole and point into it.
  internal::TensorBuffer* buffer_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_H_
