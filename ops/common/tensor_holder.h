// TensorHolder: a resource that holds tensors, such as a TensorArray.
#ifndef GRADFLOW_OPS_COMMON_TENSOR_HOLDER_H_
#define GRADFLOW_OPS_COMMON_TENSOR_HOLDER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"

namespace gradflow {

// A handle keeps its resource alive, so holders that hold the handles of each other would never be
// freed. A holder therefore accepts only handles of holders that were made after it.
//
// Thread safety: thread-safe.
class TensorHolder : public ResourceBase {
 public:
  TensorHolder();

  // Returns INVALID_ARGUMENT if `value`, or a list in it, has the handle of this holder or of an
  // older holder. Returns RESOURCE_EXHAUSTED if lists of handles or of lists have too many elements
  // to search. `value` may have any type.
  absl::Status CheckHandles(const Tensor& value) const;

 private:
  absl::Status CheckHandles(const Tensor& value, int64_t* searched) const;

  // Counts the holders of the process.
  const uint64_t number_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_TENSOR_HOLDER_H_
