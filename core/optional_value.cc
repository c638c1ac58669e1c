#include "gradflow/core/optional_value.h"

#include "absl/strings/str_cat.h"

namespace gradflow {

std::string OptionalValue::DebugString() const {
  if (!has_value()) return "no value";
  return absl::StrCat(components().size(), components().size() == 1 ? " tensor" : " tensors");
}

// As in TensorFlow, the metadata state whether there is a value.

void OptionalValue::Encode(VariantTensorData* data) const {
  data->set_type_name(kTypeName);
  data->set_metadata(has_value());
  if (has_value()) data->tensors_ = components();
}

bool OptionalValue::Decode(VariantTensorData data) {
  bool has_value = false;
  if (data.type_name() != kTypeName || !data.get_metadata(&has_value)) return false;
  if (!has_value && data.tensors_size() > 0) return false;
  *this = has_value ? OptionalValue(std::move(data.tensors_)) : OptionalValue();
  return true;
}

}  // namespace gradflow
