#include "gradflow/core/ragged_value.h"

#include "absl/strings/str_cat.h"

namespace gradflow {

std::string RaggedValue::DebugString() const {
  return absl::StrCat(splits().size(), " splits, ", DataTypeString(values().dtype()),
                      values().shape().DebugString());
}

void RaggedValue::Encode(VariantTensorData* data) const {
  data->set_type_name(kTypeName);
  data->tensors_ = components_;
}

bool RaggedValue::Decode(VariantTensorData data) {
  if (data.type_name() != kTypeName || data.tensors_.empty()) return false;
  // Values in values would recurse.
  for (const Tensor& component : data.tensors_) {
    if (component.dtype() == DT_VARIANT) return false;
  }
  components_ = std::move(data.tensors_);
  return true;
}

}  // namespace gradflow
