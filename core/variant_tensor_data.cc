#include "gradflow/core/variant_tensor_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/variant_proto.h"
#include "gradflow/core/variant_registry.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow {
namespace internal {

void WriteData(const VariantTensorData& data, VariantTensorDataProto* proto,
               EncodingLimits* limits) {
  proto->Clear();
  proto->set_type_name(data.type_name_);
  proto->set_metadata(data.metadata_);
  limits->bytes -= static_cast<int64_t>(data.type_name_.size() + data.metadata_.size());
  --limits->depth;
  for (const Tensor& tensor : data.tensors_) {
    if (limits->bytes < 0) break;
    WriteTensor(tensor, proto->add_tensors(), limits);
  }
  ++limits->depth;
}

void WriteVariant(const Variant& variant, VariantTensorDataProto* proto, EncodingLimits* limits) {
  limits->bytes -= sizeof(VariantTensorDataProto);
  if (limits->depth <= 0 || limits->bytes < 0) return;
  if (const auto* const encoded = variant.get<VariantTensorDataProto>()) {
    limits->bytes -= static_cast<int64_t>(encoded->SpaceUsedLong());
    if (limits->bytes >= 0) *proto = *encoded;
    return;
  }
  VariantTensorData data;
  variant.Encode(&data);
  WriteData(data, proto, limits);
}

absl::StatusOr<VariantTensorData> ReadData(const VariantTensorDataProto& proto,
                                           const std::shared_ptr<Allocator>& allocator) {
  VariantTensorData data;
  data.type_name_ = proto.type_name();
  data.metadata_ = proto.metadata();
  for (const TensorProto& tensor : proto.tensors()) {
    GRADFLOW_ASSIGN_OR_RETURN(*data.add_tensors(), ReadTensor(tensor, allocator));
  }
  return data;
}

absl::StatusOr<Variant> ReadVariant(const VariantTensorDataProto& proto,
                                    const std::shared_ptr<Allocator>& allocator) {
  if (proto.type_name().empty() && proto.metadata().empty() && proto.tensors().empty()) {
    return Variant();
  }
  if (proto.type_name() == TensorList::kTypeName) {
    GRADFLOW_ASSIGN_OR_RETURN(const VariantTensorData data, ReadData(proto, allocator));
    absl::StatusOr<TensorList> list = TensorList::FromData(data, allocator);
    if (list.ok()) return Variant(*std::move(list));
    if (absl::IsResourceExhausted(list.status())) return list.status();
    return Variant(proto);
  }
  Variant value(proto);
  const auto* const decode = VariantRegistry::Global().FindDecode(proto.type_name());
  // A decoder that failed may have changed the value. The encoded form is kept.
  if (decode != nullptr && !(*decode)(&value)) value = proto;
  return value;
}

}  // namespace internal

VariantTensorData::VariantTensorData(const VariantTensorDataProto& proto) { FromProto(proto); }

void VariantTensorData::ToProto(VariantTensorDataProto* proto) const {
  internal::RequireOut(proto, "VariantTensorData::ToProto", "proto");
  internal::EncodingLimits limits;
  internal::WriteData(*this, proto, &limits);
}

bool VariantTensorData::FromProto(const VariantTensorDataProto& proto) {
  absl::StatusOr<VariantTensorData> data = internal::ReadData(proto, SystemAllocator());
  if (!data.ok()) return false;
  *this = *std::move(data);
  return true;
}

std::string VariantTensorData::SerializeAsString() const {
  std::string bytes;
  SerializeToString(&bytes);
  return bytes;
}

bool VariantTensorData::SerializeToString(std::string* bytes) const {
  internal::RequireOut(bytes, "VariantTensorData::SerializeToString", "bytes");
  VariantTensorDataProto proto;
  ToProto(&proto);
  return proto.SerializeToString(bytes);
}

bool VariantTensorData::ParseFromString(const std::string& bytes) {
  VariantTensorDataProto proto;
  return proto.ParseFromString(bytes) && FromProto(proto);
}

std::string VariantTensorData::DebugString() const {
  return absl::StrCat("type_name: ", errors::Printable(type_name_), " metadata: ", metadata_.size(),
                      " bytes tensors: ", tensors_.size());
}

}  // namespace gradflow
