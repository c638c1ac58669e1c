// Conversion between variants and VariantTensorDataProto. Internal.
//
// Lists may hold lists and share them, so a small tensor may need a huge message. Limits therefore
// apply to the encoding.
#ifndef GRADFLOW_CORE_VARIANT_PROTO_H_
#define GRADFLOW_CORE_VARIANT_PROTO_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/variant.h"
#include "gradflow/core/variant_tensor_data.h"

namespace gradflow {

class TensorProto;

namespace internal {

// The maximum number of levels of variants in tensors in variants. Protocol Buffers parses fewer
// levels.
inline constexpr int kMaxVariantDepth = 64;

// The depth and memory that remain for the encoding. Variants beyond these limits are written
// empty.
struct EncodingLimits {
  int depth = kMaxVariantDepth;
  // The memory of the messages.
  int64_t bytes = int64_t{1} << 30;
};

void WriteTensor(const Tensor& tensor, TensorProto* proto, EncodingLimits* limits);
void WriteVariant(const Variant& variant, VariantTensorDataProto* proto, EncodingLimits* limits);
void WriteData(const VariantTensorData& data, VariantTensorDataProto* proto,
               EncodingLimits* limits);

// Like TensorFromProto(), but does not check the messages of variants in the tensor.
absl::StatusOr<Tensor> ReadTensor(const TensorProto& proto,
                                  const std::shared_ptr<Allocator>& allocator);
// Returns the decoded value, or a copy of `proto` if its type is not known or the value is not
// valid. Returns RESOURCE_EXHAUSTED if out of memory.
absl::StatusOr<Variant> ReadVariant(const VariantTensorDataProto& proto,
                                    const std::shared_ptr<Allocator>& allocator);
absl::StatusOr<VariantTensorData> ReadData(const VariantTensorDataProto& proto,
                                           const std::shared_ptr<Allocator>& allocator);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_CORE_VARIANT_PROTO_H_
