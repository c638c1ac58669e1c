// Conversion between Tensor and TensorProto, the form of tensors in a GraphDef.
#ifndef GRADFLOW_CORE_TENSOR_PROTO_H_
#define GRADFLOW_CORE_TENSOR_PROTO_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class StopToken;
class TensorProto;

// Returns the tensor that `proto` encodes. Copies the values. They are in tensor_content
// (little-endian bytes in row-major order; for strings, all lengths as varints, then all bytes) or
// in the typed list of the dtype. A list may be shorter than the tensor: the last value fills the
// rest, and an empty list means zeros (empty strings).
//
// A variant whose type is not registered (core/variant_registry.h), or that is not valid, stays the
// VariantTensorDataProto that encodes it.
//
// Returns INVALID_ARGUMENT for: a reference type or another type without tensors; an invalid or
// partial shape; tensor_content whose size does not match the shape; a list longer than the tensor;
// values in the list of another type; more than 64 levels of variants in variants. The error names
// the expected and the actual value. Returns RESOURCE_EXHAUSTED if out of memory, and CANCELLED if
// `stop` is not null and has stopped the run.
absl::StatusOr<Tensor> TensorFromProto(
    const TensorProto& proto, const std::shared_ptr<Allocator>& allocator = SystemAllocator(),
    StopToken* stop = nullptr);

// Returns the INVALID_ARGUMENT error that TensorFromProto would return, without making the tensor.
absl::Status ValidateTensorProto(const TensorProto& proto);

// Returns about the bytes of the tensor that `proto` encodes, including the last of its strings and
// the tensors of its variants; -1 if they exceed int64 or the shape is not valid.
// REQUIRES: ValidateTensorProto(proto) is OK
int64_t TensorProtoBytes(const TensorProto& proto);

// Writes `tensor` in its smaller encoding: one value in the typed list if all elements have the
// same bits, tensor_content otherwise. Strings are always written to their list.
void TensorToProto(const Tensor& tensor, TensorProto* proto);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_PROTO_H_
