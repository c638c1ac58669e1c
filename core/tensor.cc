#include "gradflow/core/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variant.h"

namespace gradflow {
namespace {

// The C++ types of elements that are constructed and destroyed.
using ObjectTypes = TypeList<tstring, ResourceHandle, Variant>;

// Elements in memory of an allocator. One block holds this header and the elements after it.
class OwnedBuffer final : public internal::TensorBuffer {
 public:
  // Returns null if out of memory.
  static OwnedBuffer* Make(const std::shared_ptr<Allocator>& allocator, size_t bytes,
                           DataType dtype) {
    if (bytes > std::numeric_limits<size_t>::max() / 2) return nullptr;
    void* block = allocator->Allocate(kHeaderBytes + bytes);
    if (block == nullptr) return nullptr;
    auto* data = static_cast<char*>(block) + kHeaderBytes;
    return new (block) OwnedBuffer(allocator, data, bytes, dtype);
  }

 private:
  static constexpr size_t kHeaderBytes = Allocator::kAlignment;

  OwnedBuffer(const std::shared_ptr<Allocator>& allocator, void* data, size_t bytes, DataType dtype)
      : TensorBuffer(data, bytes, /*writable=*/true), allocator_(allocator), dtype_(dtype) {
    ForElements(
        [](auto* elements, size_t n) { std::uninitialized_value_construct_n(elements, n); });
  }

  // Calls fn(elements, their number) if the elements are objects.
  template <typename F>
  void ForElements(F fn) {
    DispatchType(ObjectTypes(), dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      fn(static_cast<T*>(data()), size() / sizeof(T));
    });
  }

  void Free() override {
    if (reserved_ > 0) allocator_->Release(reserved_);
    if (dtype_ == DT_VARIANT) return FreeVariants();
    Destroy();
  }

  void Destroy() {
    ForElements([](auto* elements, size_t n) { std::destroy_n(elements, n); });
    const std::shared_ptr<Allocator> allocator = std::move(allocator_);
    const size_t bytes = kHeaderBytes + size();
    this->~OwnedBuffer();
    allocator->Deallocate(this, bytes);
  }

  // A variant may hold tensors of variants, to any depth. Buffers that are freed by the destructor
  // of a variant wait until it has returned, so that the stack does not grow with the depth.
  void FreeVariants() {
    thread_local bool is_freeing = false;
    thread_local OwnedBuffer* waiting = nullptr;
    next_ = std::exchange(waiting, this);
    if (is_freeing) return;
    is_freeing = true;
    while (waiting != nullptr) {
      OwnedBuffer* const buffer = waiting;
      waiting = buffer->next_;
      buffer->Destroy();
    }
    is_freeing = false;
  }

  bool Reserve(size_t bytes) override {
    if (bytes > reserved_) {
      if (!allocator_->Reserve(bytes - reserved_)) return false;
    } else if (bytes < reserved_) {
      allocator_->Release(reserved_ - bytes);
    }
    reserved_ = bytes;
    return true;
  }

  bool IsOf(const Allocator& allocator) const override { return allocator_.get() == &allocator; }

  std::shared_ptr<Allocator> allocator_;
  DataType dtype_;
  union {
    size_t reserved_ = 0;
    // The next buffer that waits to be freed.
    OwnedBuffer* next_;
  };
};
static_assert(sizeof(OwnedBuffer) <= Allocator::kAlignment, "the header must fit before the data");

class ExternalBuffer final : public internal::TensorBuffer {
 public:
  ExternalBuffer(void* data, size_t bytes, bool writable, std::function<void()> release)
      : TensorBuffer(data, bytes, writable), release_(std::move(release)) {}

 private:
  void Free() override {
    if (release_) release_();
    delete this;
  }

  std::function<void()> release_;
};

size_t ElementBytes(DataType dtype) {
  size_t bytes = DataTypeSize(dtype);
  DispatchType(ObjectTypes(), dtype,
               [&](auto tag) { bytes = sizeof(typename decltype(tag)::type); });
  return bytes;
}

// Multiplies and maps overflow to 0. A product overflows only if another dimension is 0; the value
// then does not matter.
void Multiply(int64_t* product, int64_t size) {
  *product = std::max<int64_t>(MultiplyWithoutOverflow(*product, size), 0);
}

absl::Status CheckTypeAndShape(DataType dtype, const TensorShape& shape) {
  if (!DataTypeCanBeTensor(dtype) && dtype != DT_RESOURCE) {
    return errors::InvalidArgument("no tensor can have type ", DataTypeString(dtype));
  }
  if (!shape.IsValid()) {
    return errors::InvalidArgument("shape ", shape.DebugString(),
                                   " is not valid: dimensions are negative or too many, or their "
                                   "product overflows");
  }
  return absl::OkStatus();
}

}  // namespace

bool internal::TensorBuffer::Reserve(size_t) { return true; }
bool internal::TensorBuffer::IsOf(const Allocator&) const { return false; }

Tensor::Tensor(DataType dtype, const TensorShape& shape)
    : Tensor(SystemAllocator(), dtype, shape) {}

Tensor::Tensor(const std::shared_ptr<Allocator>& allocator, DataType dtype,
               const TensorShape& shape)
    : dtype_(dtype), shape_(shape) {
  if (absl::StatusOr<Tensor> tensor = Allocate(allocator, dtype, shape); tensor.ok()) {
    *this = *std::move(tensor);
  } else if (shape.num_elements() == 0) {
    // IsInitialized() must be false even if `shape` has no elements.
    shape_ = TensorShape({-1});
  }
}

absl::StatusOr<Tensor> Tensor::Allocate(const std::shared_ptr<Allocator>& allocator, DataType dtype,
                                        const TensorShape& shape) {
  GRADFLOW_RETURN_IF_ERROR(CheckTypeAndShape(dtype, shape));
  const int64_t count = shape.num_elements();
  if (count == 0) return Tensor(dtype, shape, nullptr, nullptr);
  const int64_t bytes = MultiplyWithoutOverflow(count, ElementBytes(dtype));
  // Copies the shape, which may throw, before allocating the buffer, which would leak.
  Tensor tensor(dtype, shape, nullptr, nullptr);
  internal::TensorBuffer* buffer = bytes < 0 ? nullptr : OwnedBuffer::Make(allocator, bytes, dtype);
  if (buffer == nullptr) {
    return errors::ResourceExhausted("out of memory for a tensor of type ", DataTypeString(dtype),
                                     " and shape ", shape.DebugString());
  }
  tensor.buffer_ = buffer;
  tensor.data_ = buffer->data();
  return tensor;
}

absl::Status Tensor::BuildTensor(DataType dtype, const TensorShape& shape, Tensor* out) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out, "Tensor::BuildTensor", "out"));
  GRADFLOW_ASSIGN_OR_RETURN(*out, Allocate(dtype, shape));
  return absl::OkStatus();
}

size_t Tensor::StringBytes() const {
  size_t bytes = 0;
  if (dtype_ == DT_STRING) {
    for (const tstring& s : span<tstring>()) bytes += s.size();
  }
  return bytes;
}

absl::Status Tensor::ChargeStrings() {
  return dtype_ == DT_STRING ? ChargeStrings(StringBytes()) : absl::OkStatus();
}

absl::Status Tensor::ChargeStrings(size_t bytes) {
  if (dtype_ != DT_STRING || buffer_ == nullptr || buffer_->Reserve(bytes)) return absl::OkStatus();
  return errors::ResourceExhausted("out of memory for the ", bytes,
                                   " characters of a tensor of strings of shape ",
                                   shape_.DebugString());
}

absl::Status Tensor::ChargeVariants(size_t bytes) {
  if (dtype_ != DT_VARIANT || buffer_ == nullptr || buffer_->Reserve(bytes)) {
    return absl::OkStatus();
  }
  return errors::ResourceExhausted("out of memory for the ", bytes,
                                   " bytes of encoded values of a tensor of variants of shape ",
                                   shape_.DebugString());
}

absl::StatusOr<Tensor> Tensor::FromMemory(DataType dtype, const TensorShape& shape, void* data,
                                          bool writable, std::function<void()> release) {
  absl::Status status = CheckTypeAndShape(dtype, shape);
  const size_t element = DataTypeSize(dtype);
  if (status.ok() && element == 0) {
    status = errors::InvalidArgument("a tensor of type ", DataTypeString(dtype),
                                     " cannot be made over plain memory");
  }
  const int64_t bytes = MultiplyWithoutOverflow(shape.num_elements(), element);
  if (status.ok() && bytes < 0) {
    status = errors::InvalidArgument("a tensor of shape ", shape.DebugString(), " and type ",
                                     DataTypeString(dtype), " has more bytes than memory");
  }
  // Complex numbers have the alignment of their parts.
  const size_t alignment = DataTypeIsComplex(dtype) ? element / 2 : element;
  if (status.ok() && bytes > 0 &&
      (data == nullptr || reinterpret_cast<uintptr_t>(data) % alignment != 0)) {
    status = errors::InvalidArgument("memory of a tensor of type ", DataTypeString(dtype),
                                     " must start at a multiple of ", alignment, " bytes");
  }
  if (!status.ok()) {
    if (release) release();
    return status;
  }
  if (bytes == 0) {
    if (release) release();
    return Tensor(dtype, shape, nullptr, nullptr);
  }
  Tensor tensor(dtype, shape, nullptr, data);
  tensor.buffer_ = new ExternalBuffer(data, bytes, writable, std::move(release));
  return tensor;
}

size_t Tensor::TotalBytes() const {
  if (!IsInitialized()) return 0;
  size_t bytes = NumElements() * ElementBytes(dtype_);
  if (dtype_ == DT_STRING) {
    for (const tstring& s : flat<tstring>()) bytes += s.size();
  }
  return bytes;
}

Tensor Tensor::Slice(int64_t start, int64_t limit) const {
  if (dims() == 0) return *this;
  const int64_t rows = dim_size(0);
  start = std::clamp<int64_t>(start, 0, rows);
  limit = std::clamp<int64_t>(limit, start, rows);
  Tensor slice = *this;
  slice.shape_.set_dim(0, limit - start);
  if (slice.NumElements() > 0 && data_ != nullptr) {
    const int64_t row_bytes = NumElements() / rows * ElementBytes(dtype_);
    slice.data_ = static_cast<char*>(data_) + start * row_bytes;
  }
  return slice;
}

Tensor Tensor::SubSlice(int64_t index) const {
  if (dims() == 0 || index < 0 || index >= dim_size(0)) {
    return Tensor(dtype_, TensorShape({-1}), nullptr, nullptr);
  }
  Tensor slice = Slice(index, index + 1);
  slice.shape_.RemoveDim(0);
  return slice;
}

bool Tensor::CopyFrom(const Tensor& other, const TensorShape& shape) {
  if (!shape.IsValid() || !other.IsInitialized() || shape.num_elements() != other.NumElements()) {
    return false;
  }
  // Calls Ref() first, because both tensors may share a buffer whose last reference this tensor
  // holds.
  if (other.buffer_ != nullptr) other.buffer_->Ref();
  Drop();
  dtype_ = other.dtype_;
  shape_ = shape;
  buffer_ = other.buffer_;
  data_ = other.data_;
  borrows_ = false;
  return true;
}

absl::StatusOr<Tensor> Tensor::Reshaped(const TensorShape& shape) const {
  Tensor reshaped;
  if (!reshaped.CopyFrom(*this, shape)) {
    return errors::InvalidArgument("a tensor of shape ", shape_.DebugString(),
                                   " cannot be reshaped to ", shape.DebugString());
  }
  return reshaped;
}

absl::Status Tensor::BitcastFrom(const Tensor& other, DataType dtype, const TensorShape& shape) {
  if (!DataTypeIsPlainBytes(dtype) || !DataTypeIsPlainBytes(other.dtype_)) {
    return errors::InvalidArgument("a tensor of type ", DataTypeString(other.dtype_),
                                   " cannot be bitcast to ", DataTypeString(dtype));
  }
  // Compares sizes in bytes. The product cannot overflow, because `other` exists.
  const int64_t size = DataTypeSize(dtype);
  const auto bytes = static_cast<int64_t>(other.TotalBytes());
  if (!shape.IsValid() || !other.IsInitialized() || shape.num_elements() > bytes / size ||
      shape.num_elements() * size != bytes) {
    return errors::InvalidArgument("a tensor of ", bytes, " bytes cannot be bitcast to ",
                                   DataTypeString(dtype), " of shape ", shape.DebugString());
  }
  if (reinterpret_cast<uintptr_t>(other.data_) % static_cast<uintptr_t>(size) != 0) {
    return errors::InvalidArgument("the elements are not aligned for ", DataTypeString(dtype));
  }
  Tensor cast;
  cast.CopyFrom(other, other.shape_);
  cast.dtype_ = dtype;
  cast.shape_ = shape;
  *this = std::move(cast);
  return absl::OkStatus();
}

void Tensor::UnsafeCopyFromInternal(const Tensor& other, DataType dtype, const TensorShape& shape) {
  if (!BitcastFrom(other, dtype, shape).ok()) *this = Tensor(Unset());
}

absl::StatusOr<Tensor> Tensor::DeepCopy() const {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype_, shape_));
  if (!IsInitialized()) return errors::FailedPrecondition("the tensor is not initialized");
  const bool has_objects = DispatchType(ObjectTypes(), dtype_, [&](auto tag) {
    const auto from = span<typename decltype(tag)::type>();
    std::copy(from.begin(), from.end(), copy.span<typename decltype(tag)::type>().begin());
  });
  if (const size_t bytes = TotalBytes(); bytes > 0 && !has_objects) {
    std::memcpy(copy.data_, data_, bytes);
  }
  return copy;
}

bool Tensor::OwnsBufferOf(const Allocator& allocator) const {
  if (buffer_ == nullptr) return true;
  return buffer_->IsOf(allocator) && buffer_->size() == NumElements() * ElementBytes(dtype_);
}

absl::string_view Tensor::tensor_data() const {
  if (data_ == nullptr) return {};
  return absl::string_view(static_cast<const char*>(data_), NumElements() * ElementBytes(dtype_));
}

bool Tensor::CountsMatch(absl::Span<const int64_t> dims) const {
  const TensorShape shape(dims);
  return shape.IsValid() && shape.num_elements() == NumElements();
}

DimVector Tensor::InnerDims(int n) const {
  DimVector result(n, 1);
  const auto sizes = shape_.dim_sizes();
  const int extra = dims() - n;
  for (int d = 0; d < dims(); ++d) Multiply(&result[std::max(d - extra, 0)], sizes[d]);
  return result;
}

DimVector Tensor::OuterDims(int n) const {
  DimVector result(n, 1);
  const auto sizes = shape_.dim_sizes();
  for (int d = 0; d < dims(); ++d) Multiply(&result[std::min(d, n - 1)], sizes[d]);
  return result;
}

DimVector Tensor::InnerOuterDims(int n, int64_t begin) const {
  DimVector result(n, 1);
  const auto sizes = shape_.dim_sizes();
  for (int d = 0; d < dims(); ++d) {
    Multiply(&result[std::clamp<int64_t>(d - begin, 0, n - 1)], sizes[d]);
  }
  return result;
}

}  // namespace gradflow
