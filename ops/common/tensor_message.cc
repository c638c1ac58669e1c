#include "gradflow/ops/common/tensor_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow {
namespace {

// Replaces the list of strings by all lengths, followed by all bytes.
void MoveStringsToBytes(TensorProto* proto) {
  std::string content;
  {
    google::protobuf::io::StringOutputStream stream(&content);
    google::protobuf::io::CodedOutputStream coded(&stream);
    for (const std::string& string : proto->string_val()) {
      coded.WriteVarint32(static_cast<uint32_t>(string.size()));
    }
    for (const std::string& string : proto->string_val()) coded.WriteString(string);
  }
  proto->clear_string_val();
  proto->set_tensor_content(std::move(content));
}

}  // namespace

absl::StatusOr<std::string> SerializedTensor(const Tensor& tensor,
                                             const std::shared_ptr<Allocator>& allocator,
                                             bool strings_as_bytes) {
  // The message, and its bytes.
  const auto bytes = static_cast<double>(tensor.TotalBytes());
  if (bytes > std::numeric_limits<int32_t>::max() / 2) {
    return errors::InvalidArgument("a tensor of ", tensor.TotalBytes(),
                                   " bytes is too large for a message");
  }
  MemoryReservation memory(allocator.get());
  GRADFLOW_RETURN_IF_ERROR(memory.Set(2 * bytes, "a message"));
  TensorProto proto;
  tensor.AsProtoTensorContent(&proto);
  if (strings_as_bytes && tensor.dtype() == DT_STRING) MoveStringsToBytes(&proto);
  std::string text;
  if (!proto.SerializeToString(&text)) {
    return errors::InvalidArgument("the tensor is too large for a message");
  }
  return text;
}

absl::StatusOr<Tensor> ParsedTensor(absl::string_view name, absl::string_view serialized,
                                    DataType dtype, const std::shared_ptr<Allocator>& allocator) {
  // A byte of the message may become a number of 8 bytes, in a list that has room for more, or a
  // string.
  constexpr double kExpansion = 48;
  MemoryReservation memory(allocator.get());
  GRADFLOW_RETURN_IF_ERROR(
      memory.Set(kExpansion * static_cast<double>(serialized.size()), "a message"));
  TensorProto proto;
  if (serialized.size() > std::numeric_limits<int32_t>::max() ||
      !proto.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    return errors::InvalidArgument(name, " is not a TensorProto");
  }
  if (proto.dtype() != dtype) {
    return errors::InvalidArgument(name, " has type ",
                                   DataTypeString(static_cast<DataType>(proto.dtype())),
                                   ", expected ", DataTypeString(dtype));
  }
  return TensorFromProto(proto, allocator);
}

}  // namespace gradflow
