#include "gradflow/core/variant.h"

#include <cxxabi.h>

#include <cstdlib>

#include "absl/strings/strip.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow {

std::string internal::ReadableTypeName(const std::type_info& type) {
  int error = 0;
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &error);
  std::string result = error == 0 ? name : type.name();
  std::free(name);
  return result;
}

std::string internal::MessageTypeName(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "gradflow.")) return absl::StrCat("tensorflow.", name);
  return std::string(name);
}

std::string Variant::TypeName() const {
  return is_empty() ? "" : ops_->type_name(ops_->value(storage_));
}

std::string Variant::SummarizeValue() const {
  return is_empty() ? "" : ops_->debug_string(ops_->value(storage_));
}

std::string Variant::DebugString() const {
  return absl::StrCat("Variant<type: ", TypeName(), " value: ", SummarizeValue(), ">");
}

void Variant::Encode(VariantTensorData* data) const {
  internal::RequireOut(data, "Variant::Encode", "data");
  *data = VariantTensorData();
  if (!is_empty()) ops_->encode(ops_->value(storage_), data);
}

bool Variant::Decode(VariantTensorData data) {
  return !is_empty() && ops_->decode(&data, ops_->mutable_value(storage_));
}

bool Variant::EncodedData(VariantTensorData* data) const {
  const auto* const proto = get<VariantTensorDataProto>();
  return proto != nullptr && data->FromProto(*proto);
}

}  // namespace gradflow
