// TensorList: a list of tensors of one type, which the ops of ops/list/ pass along edges of type
// variant. An element may be unset: it then reads as zeros.
//
// Copies share the elements until one of them changes (copy-on-write). A list that is not shared
// changes in place, so n calls of PushBack() take time proportional to n. The list allocates its
// array of tensors from an allocator. The elements keep their own buffers.
//
//   GRADFLOW_ASSIGN_OR_RETURN(TensorList list, TensorList::Make(DT_FLOAT, {2}, -1, allocator));
//   GRADFLOW_RETURN_IF_ERROR(list.PushBack(tensor));
//
// Thread safety: const methods may be called concurrently; other methods need exclusive access to
// the list. Copies may be used on different threads.
#ifndef GRADFLOW_CORE_TENSOR_LIST_H_
#define GRADFLOW_CORE_TENSOR_LIST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/core/variant_tensor_data.h"

#pragma GCC visibility push(default)
namespace gradflow {

class TensorList {
 public:
  // The name of the type in encoded variants.
  static constexpr char kTypeName[] = "tensorflow::TensorList";

  // An empty list of type DT_INVALID. No element can be added.
  TensorList() = default;
  // Returns an empty list. Elements have type `element_dtype` and a shape that is compatible with
  // `element_shape`. At most `max_num_elements` elements may be pushed; -1 stands for any number.
  // Returns INVALID_ARGUMENT if no tensor can have the type, RESOURCE_EXHAUSTED if out of memory.
  static absl::StatusOr<TensorList> Make(
      DataType element_dtype, const PartialTensorShape& element_shape,
      int64_t max_num_elements = -1,
      const std::shared_ptr<Allocator>& allocator = SystemAllocator());
  TensorList(const TensorList& other) noexcept;
  TensorList(TensorList&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  TensorList& operator=(TensorList other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~TensorList();

  // The type of all elements, and a shape that all elements match.
  DataType element_dtype() const;
  const PartialTensorShape& element_shape() const;
  // The largest size that PushBack() allows; -1 if there is no limit.
  int64_t max_num_elements() const;
  // The number of elements.
  int64_t size() const;
  // The elements. Elements that are not set have type DT_INVALID. Valid until the list changes.
  absl::Span<const Tensor> elements() const;
  bool IsSet(int64_t i) const { return elements()[i].dtype() != DT_INVALID; }
  // Returns an id of the shared elements: equal for copies that have not changed.
  const void* identity() const { return state_; }
  // Returns true if no other list shares the elements, so that changes are in place.
  bool IsUnique() const;

  // The functions below change the list. On error, the list is unchanged. They return
  // RESOURCE_EXHAUSTED if out of memory, and INVALID_ARGUMENT if the tensor has the wrong type or
  // shape or if the list is full.
  absl::Status PushBack(Tensor tensor);
  // REQUIRES: 0 <= i < size()
  absl::Status Set(int64_t i, Tensor tensor);
  // Removes the last element. REQUIRES: size() > 0
  absl::Status PopBack();
  // Removes elements at the end, or adds unset elements. REQUIRES: size >= 0
  absl::Status Resize(int64_t size);
  // Allocates the memory of `size` elements.
  absl::Status Reserve(int64_t size);

  // Returns INVALID_ARGUMENT unless a tensor of this type and shape may be an element: "the list
  // has elements of type float, but the tensor has type int32".
  absl::Status CheckElement(DataType dtype, const TensorShape& shape) const;

  // ---- As the value of a Variant ----

  std::string TypeName() const { return kTypeName; }
  // "3 elements of type float"
  std::string DebugString() const;
  void Encode(VariantTensorData* data) const;
  bool Decode(VariantTensorData data);
  // Returns the list that `data` encodes. Returns INVALID_ARGUMENT if `data` does not encode a
  // list.
  static absl::StatusOr<TensorList> FromData(const VariantTensorData& data,
                                             const std::shared_ptr<Allocator>& allocator);

 private:
  struct State;

  // Copies the elements if another list shares them. Makes room for `capacity` elements.
  absl::Status Own(int64_t capacity);

  State* state_ = nullptr;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_LIST_H_
