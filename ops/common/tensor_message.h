// Tensors as serialized TensorProto messages.
#ifndef GRADFLOW_OPS_COMMON_TENSOR_MESSAGE_H_
#define GRADFLOW_OPS_COMMON_TENSOR_MESSAGE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"

namespace gradflow {

// Returns the serialized TensorProto of `tensor`. Charges the memory of the message to `allocator`
// while it works. Strings are in the message's list of strings, or in its bytes if
// `strings_as_bytes`. Returns INVALID_ARGUMENT if the tensor is too large for a message.
absl::StatusOr<std::string> SerializedTensor(const Tensor& tensor,
                                             const std::shared_ptr<Allocator>& allocator,
                                             bool strings_as_bytes = false);

// Returns the tensor of the message `serialized`, which `name` names in errors. Returns
// INVALID_ARGUMENT unless it is the message of a tensor of type `dtype`.
absl::StatusOr<Tensor> ParsedTensor(absl::string_view name, absl::string_view serialized,
                                    DataType dtype, const std::shared_ptr<Allocator>& allocator);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_TENSOR_MESSAGE_H_
