// Tensor <-> TensorProto, the form of tensors in a GraphDef.
#ifndef GRADFLOW_CORE_TENSOR_PROTO_H_
#define GRADFLOW_CORE_TENSOR_PROTO_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class TensorProto;

// The tensor that `proto` says. Its values are tensor_content (raw little-endian bytes, row-major;
// of strings all lengths as varints, then all bytes) or the typed list of the dtype, which may be
// short: its last value fills the rest, and an empty one means zeros (empty strings). The bytes are
// copied once.
//
// INVALID_ARGUMENT, naming what was expected and found, for: a type without tensors or a reference
// type; an invalid or partial shape; tensor_content of another size than the shape's; a list
// longer than the tensor; values in the list of another type. RESOURCE_EXHAUSTED without memory.
absl::StatusOr<Tensor> TensorFromProto(
    const TensorProto& proto, const std::shared_ptr<Allocator>& allocator = SystemAllocator());

// All that TensorFromProto checks, without making the tensor.
absl::Status ValidateTensorProto(const TensorProto& proto);

// Writes `tensor` in the form that is smaller for it: one value in the typed list if all
// elements have the same bits, bytes otherwise (strings always in their list).
void TensorToProto(const Tensor& tensor, TensorProto* proto);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_PROTO_H_
