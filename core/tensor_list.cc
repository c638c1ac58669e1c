#include "gradflow/core/tensor_list.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/tensor_shape.pb.h"

namespace gradflow {

// In memory of the allocator, as the elements are.
struct TensorList::State {
  static absl::StatusOr<State*> Make(DataType dtype, const PartialTensorShape& shape, int64_t max,
                                     const std::shared_ptr<Allocator>& allocator,
                                     int64_t capacity) {
    void* const memory = allocator->Allocate(sizeof(State));
    if (memory == nullptr) return OutOfMemory(capacity);
    auto* const state = new (memory) State{{1}, dtype, shape, max, allocator};
    if (absl::Status status = state->Grow(capacity); !status.ok()) {
      state->Unref();
      return status;
    }
    return state;
  }

  static absl::Status OutOfMemory(int64_t capacity) {
    return errors::ResourceExhausted("out of memory for a list of ", capacity, " tensors");
  }

  // Moves the elements to memory of `new_capacity` elements, at least as many as there are.
  absl::Status Grow(int64_t new_capacity) {
    if (new_capacity == capacity) return absl::OkStatus();
    const int64_t bytes = MultiplyWithoutOverflow(new_capacity, sizeof(Tensor));
    if (bytes < 0) return OutOfMemory(new_capacity);
    auto* const memory = static_cast<Tensor*>(allocator->Allocate(static_cast<size_t>(bytes)));
    if (memory == nullptr) return OutOfMemory(new_capacity);
    std::uninitialized_move_n(data, size, memory);
    std::destroy_n(data, size);
    Deallocate();
    data = memory;
    capacity = new_capacity;
    return absl::OkStatus();
  }

  void Deallocate() {
    if (data != nullptr) allocator->Deallocate(data, capacity * sizeof(Tensor));
  }

  void Unref() {
    if (!IsUnique() && refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::destroy_n(data, size);
    Deallocate();
    const std::shared_ptr<Allocator> kept = std::move(allocator);
    this->~State();
    kept->Deallocate(this, sizeof(State));
  }

  bool IsUnique() const { return refs.load(std::memory_order_acquire) == 1; }

  std::atomic<int64_t> refs;
  DataType element_dtype;
  PartialTensorShape element_shape;
  int64_t max_num_elements;
  std::shared_ptr<Allocator> allocator;
  Tensor* data = nullptr;
  int64_t size = 0;
  int64_t capacity = 0;
};

absl::StatusOr<TensorList> TensorList::Make(DataType element_dtype,
                                            const PartialTensorShape& element_shape,
                                            int64_t max_num_elements,
                                            const std::shared_ptr<Allocator>& allocator) {
  if (!DataTypeCanBeTensor(element_dtype) && element_dtype != DT_RESOURCE) {
    return errors::InvalidArgument("no tensor can have type ", DataTypeString(element_dtype));
  }
  TensorList list;
  GRADFLOW_ASSIGN_OR_RETURN(
      list.state_, State::Make(element_dtype, element_shape, max_num_elements, allocator, 0));
  return list;
}

TensorList::TensorList(const TensorList& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->refs.fetch_add(1, std::memory_order_relaxed);
}

TensorList::~TensorList() {
  if (state_ != nullptr) state_->Unref();
}

DataType TensorList::element_dtype() const {
  return state_ == nullptr ? DT_INVALID : state_->element_dtype;
}

const PartialTensorShape& TensorList::element_shape() const {
  static const auto& unknown = *new PartialTensorShape;
  return state_ == nullptr ? unknown : state_->element_shape;
}

int64_t TensorList::max_num_elements() const {
  return state_ == nullptr ? -1 : state_->max_num_elements;
}

int64_t TensorList::size() const { return state_ == nullptr ? 0 : state_->size; }

absl::Span<const Tensor> TensorList::elements() const {
  return state_ == nullptr ? absl::Span<const Tensor>()
                           : absl::MakeConstSpan(state_->data, state_->size);
}

bool TensorList::IsUnique() const { return state_ == nullptr || state_->IsUnique(); }

absl::Status TensorList::CheckElement(DataType dtype, const TensorShape& shape) const {
  if (dtype != element_dtype()) {
    return errors::InvalidArgument("the list has elements of type ",
                                   DataTypeString(element_dtype()), ", but the tensor has type ",
                                   DataTypeString(dtype));
  }
  if (!element_shape().IsCompatibleWith(shape)) {
    return errors::InvalidArgument("the list has elements of shape ", element_shape().DebugString(),
                                   ", but the tensor has shape ", shape.DebugString());
  }
  return absl::OkStatus();
}

absl::Status TensorList::Own(int64_t capacity) {
  if (state_ == nullptr) return errors::InvalidArgument("the list has no element type");
  const bool unique = state_->IsUnique();
  if (unique && capacity <= state_->capacity) return absl::OkStatus();
  if (unique) {
    // Doubles the memory, so that n calls of PushBack() move at most 2 n elements.
    if (capacity < 2 * state_->size && state_->Grow(2 * state_->size).ok()) return absl::OkStatus();
    return state_->Grow(capacity);
  }
  capacity = std::max(capacity, state_->size);
  GRADFLOW_ASSIGN_OR_RETURN(State* const copy,
                            State::Make(state_->element_dtype, state_->element_shape,
                                        state_->max_num_elements, state_->allocator, capacity));
  std::uninitialized_copy_n(state_->data, state_->size, copy->data);
  copy->size = state_->size;
  std::exchange(state_, copy)->Unref();
  return absl::OkStatus();
}

absl::Status TensorList::PushBack(Tensor tensor) {
  GRADFLOW_RETURN_IF_ERROR(CheckElement(tensor.dtype(), tensor.shape()));
  if (max_num_elements() >= 0 && size() >= max_num_elements()) {
    return errors::InvalidArgument("the list is full: it has ", size(), " elements, at most ",
                                   max_num_elements());
  }
  GRADFLOW_RETURN_IF_ERROR(Own(size() + 1));
  new (state_->data + state_->size) Tensor(std::move(tensor));
  ++state_->size;
  return absl::OkStatus();
}

absl::Status TensorList::Set(int64_t i, Tensor tensor) {
  internal::RequireIndex("TensorList::Set", i, size());
  GRADFLOW_RETURN_IF_ERROR(CheckElement(tensor.dtype(), tensor.shape()));
  GRADFLOW_RETURN_IF_ERROR(Own(size()));
  state_->data[i] = std::move(tensor);
  return absl::OkStatus();
}

absl::Status TensorList::PopBack() {
  internal::RequireIndex("TensorList::PopBack", 0, size());
  GRADFLOW_RETURN_IF_ERROR(Own(size()));
  --state_->size;
  // Moved out, since the destructor of an element may free other lists.
  const Tensor last = std::move(state_->data[state_->size]);
  std::destroy_at(state_->data + state_->size);
  return absl::OkStatus();
}

absl::Status TensorList::Resize(int64_t size) {
  if (size == this->size()) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(Own(size));
  if (size < state_->size) {
    std::destroy_n(state_->data + size, state_->size - size);
  } else {
    for (int64_t i = state_->size; i < size; ++i) new (state_->data + i) Tensor(Tensor::Unset());
  }
  state_->size = size;
  return absl::OkStatus();
}

absl::Status TensorList::Reserve(int64_t size) { return Own(size); }

std::string TensorList::DebugString() const {
  return absl::StrCat(size(), size() == 1 ? " element" : " elements", " of type ",
                      DataTypeString(element_dtype()));
}

// As in TensorFlow, the metadata are varints: the number of unset elements, their indices, the type
// and the maximum number of elements. The message of the shape follows. The tensors of `data` are
// the set elements.

void TensorList::Encode(VariantTensorData* data) const {
  data->set_type_name(kTypeName);
  std::string& bytes = data->metadata_;
  const auto add_varint = [&bytes](uint64_t value) {
    uint8_t varint[10];
    const uint8_t* const end =
        google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, varint);
    bytes.append(reinterpret_cast<const char*>(varint), end - varint);
  };
  std::vector<uint64_t> unset;
  for (int64_t i = 0; i < size(); ++i) {
    if (IsSet(i)) {
      data->tensors_.push_back(elements()[i]);
    } else {
      unset.push_back(i);
    }
  }
  bytes.clear();
  add_varint(unset.size());
  for (const uint64_t i : unset) add_varint(i);
  add_varint(element_dtype());
  add_varint(static_cast<uint64_t>(max_num_elements()));
  TensorShapeProto shape;
  element_shape().AsProto(&shape);
  shape.AppendToString(&bytes);
}

bool TensorList::Decode(VariantTensorData data) {
  absl::StatusOr<TensorList> list = FromData(data, SystemAllocator());
  if (!list.ok()) return false;
  *this = *std::move(list);
  return true;
}

absl::StatusOr<TensorList> TensorList::FromData(const VariantTensorData& data,
                                                const std::shared_ptr<Allocator>& allocator) {
  const auto fault = [] { return errors::InvalidArgument("the metadata do not describe a list"); };
  const std::string& bytes = data.metadata_;
  if (bytes.size() > std::numeric_limits<int>::max()) return fault();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  uint64_t num_unset;
  // Each index takes a byte, which bounds the number.
  if (!in.ReadVarint64(&num_unset) || num_unset > bytes.size()) return fault();
  const size_t size = data.tensors_.size() + num_unset;
  const int indices_at = in.CurrentPosition();
  uint64_t unset;
  for (uint64_t i = 0, least = 0; i < num_unset; ++i, least = unset + 1) {
    if (!in.ReadVarint64(&unset) || unset < least || unset >= size) return fault();
  }
  uint64_t dtype;
  uint64_t max;
  if (!in.ReadVarint64(&dtype) || dtype > std::numeric_limits<int>::max() || !in.ReadVarint64(&max))
    return fault();
  TensorShapeProto proto;
  if (!proto.ParseFromString(bytes.substr(in.CurrentPosition()))) return fault();
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, PartialTensorShape::Make(proto));
  GRADFLOW_ASSIGN_OR_RETURN(TensorList list, Make(static_cast<DataType>(dtype), shape,
                                                  static_cast<int64_t>(max), allocator));
  GRADFLOW_RETURN_IF_ERROR(list.Resize(static_cast<int64_t>(size)));

  google::protobuf::io::CodedInputStream indices(
      reinterpret_cast<const uint8_t*>(bytes.data()) + indices_at,
      static_cast<int>(bytes.size()) - indices_at);
  uint64_t left = num_unset;
  const auto next_unset = [&] {
    return left-- > 0 && indices.ReadVarint64(&unset) ? unset
                                                      : std::numeric_limits<uint64_t>::max();
  };
  auto tensor = data.tensors_.begin();
  uint64_t skipped = next_unset();
  for (size_t i = 0; i < size; ++i) {
    if (i == skipped) {
      skipped = next_unset();
    } else {
      GRADFLOW_RETURN_IF_ERROR(list.Set(static_cast<int64_t>(i), *tensor++));
    }
  }
  return list;
}

}  // namespace gradflow
