// TensorArray: the resource of the TensorArray ops. An array of tensors of one type. Each element
// is written once. In an array of gradients, further writes are added to the element.
#ifndef GRADFLOW_OPS_DATA_FLOW_TENSOR_ARRAY_H_
#define GRADFLOW_OPS_DATA_FLOW_TENSOR_ARRAY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/common/tensor_holder.h"

namespace gradflow {

// Lives as long as a tensor holds its handle. Thread-safe.
class TensorArray final : public TensorHolder {
 public:
  struct Options {
    // For errors.
    std::string name;
    // The key of an array of gradients (Gradient()).
    std::string source;
    DataType dtype = DT_INVALID;
    PartialTensorShape element_shape;
    // True if writes beyond the end make the array larger.
    bool dynamic_size = false;
    // True if reading an element drops it.
    bool clear_after_read = true;
    // True if the first element that is written determines the shape of the others.
    bool identical_element_shapes = false;
    // 0 for an array of values, 1 for their gradients, 2 for the gradients of these, and so on.
    int order = 0;
    // Returns true if writing an element again adds to it.
    bool is_gradient() const { return order > 0; }
  };

  // Returns an array of `size` elements. Charges its memory to `allocator`.
  static absl::StatusOr<std::shared_ptr<TensorArray>> Make(
      Options options, int64_t size, const std::shared_ptr<Allocator>& allocator);

  const std::string& name() const { return options_.name; }
  DataType dtype() const { return options_.dtype; }
  std::string DebugString() const override;
  // All methods below return INVALID_ARGUMENT after Close().
  absl::StatusOr<int64_t> Size() const;
  // The number of elements that Pack and Concat return. In an array of gradients, this is the
  // number that SetSplit() set for the array of values.
  absl::StatusOr<int64_t> PackSize() const;
  absl::StatusOr<bool> HasDynamicSize() const;
  // Records that a tensor was split into `size` elements, which PackSize() returns for arrays of
  // gradients.
  absl::Status SetSplit(int64_t size);
  // Merges `shape` into the shape of elements and returns the result.
  absl::StatusOr<PartialTensorShape> MergeElementShape(const PartialTensorShape& shape);
  absl::Status Write(KernelContext& ctx, int64_t index, const Tensor& value);
  // Returns zeros for an element that has not been written.
  absl::StatusOr<Tensor> Read(KernelContext& ctx, int64_t index);
  // Returns the array of the gradients of this array that belongs to `source`, and makes it if
  // necessary. Its elements have the shapes of the elements of this array, with `prefix` in front.
  // From now on, the size of this array does not change.
  absl::StatusOr<std::shared_ptr<TensorArray>> Gradient(KernelContext& ctx,
                                                        const std::string& source,
                                                        const TensorShape& prefix);
  // Drops all elements.
  absl::Status Close();

 private:
  struct Element {
    // Has type DT_INVALID if the element is zeros, or has been dropped.
    Tensor tensor = Tensor(Tensor::Unset());
    TensorShape shape;
    bool is_written = false;
    bool is_read = false;
    bool is_cleared = false;
    // True if nothing but the array holds the tensor.
    bool is_sum = false;
  };

  TensorArray(Options options, const std::shared_ptr<Allocator>& allocator)
      : options_(std::move(options)), allocator_(allocator), reservation_(allocator.get()) {}

  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Charges the memory of the array with room for `capacity` elements, without their tensors.
  absl::Status Charge(size_t capacity) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Resize(int64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Add(KernelContext& ctx, const Tensor& value, Element* element)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns an error that begins with the name of the array.
  template <typename... Args>
  absl::Status Error(const Args&... args) const;

  const Options options_;
  const std::shared_ptr<Allocator> allocator_;
  mutable Mutex mutex_;
  MemoryReservation reservation_ ABSL_GUARDED_BY(mutex_);
  std::vector<Element> elements_ ABSL_GUARDED_BY(mutex_);
  PartialTensorShape element_shape_ ABSL_GUARDED_BY(mutex_);
  bool may_grow_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // True if an element is a sum, which has no gradient.
  bool has_sums_ ABSL_GUARDED_BY(mutex_) = false;
  // -1 if SetSplit() has not been called.
  int64_t split_size_ ABSL_GUARDED_BY(mutex_) = -1;
  // Keyed by Options::source of the arrays.
  std::map<absl::string_view, std::shared_ptr<TensorArray>> gradients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_DATA_FLOW_TENSOR_ARRAY_H_
