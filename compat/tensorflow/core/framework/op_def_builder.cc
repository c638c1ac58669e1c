#include "tensorflow/core/framework/op_def_builder.h"

#include "absl/strings/strip.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {

OpDefBuilder& OpDefBuilder::Doc(absl::string_view text) {
  if (has_doc_) status_.Update(errors::InvalidArgument("Extra call to Doc() for Op ", name_));
  has_doc_ = true;
  builder_.Doc(text);
  return *this;
}

OpDefBuilder& OpDefBuilder::SetShapeFn(OpShapeInferenceFn fn) {
  if (shape_fn_ != nullptr) {
    status_.Update(errors::InvalidArgument("SetShapeFn called twice for Op ", name_));
  }
  shape_fn_ = std::move(fn);
  return *this;
}

absl::Status OpDefBuilder::Finalize(OpRegistrationData* op_reg_data) const {
  TF_RETURN_IF_ERROR(status_);
  OpDef op_def;
  if (absl::Status status = builder_.FinalizeUnchecked(&op_def); !status.ok()) {
    return errors::InvalidArgument(absl::StripPrefix(status.message(), "op 'Op': "), " for Op ",
                                   name_);
  }
  op_def.set_name(name_);
  if (is_distributed_) op_def.set_is_distributed_communication(true);
  op_reg_data->op_def = std::move(op_def);
  op_reg_data->shape_inference_fn = shape_fn_;
  return absl::OkStatus();
}

}  // namespace tensorflow
