// OpDefBuilder: builds the definition of an op from spec strings; see
// gradflow/core/op_def_builder.h. OpRegistrationData: a definition and its shape function.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_BUILDER_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/op_def_builder.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

struct OpRegistrationData {
  OpRegistrationData() = default;
  OpRegistrationData(const OpDef& def) : op_def(def) {}  // NOLINT: as in TensorFlow
  OpRegistrationData(const OpDef& def, OpShapeInferenceFn fn, bool is_function = false)
      : op_def(def), shape_inference_fn(std::move(fn)), is_function_op(is_function) {}

  OpDef op_def;
  // Empty if the op has no shape function.
  OpShapeInferenceFn shape_inference_fn;
  bool is_function_op = false;
};

class OpDefBuilder {
 public:
  explicit OpDefBuilder(absl::string_view op_name) : name_(op_name), builder_("Op") {}

  OpDefBuilder& Attr(absl::string_view spec) {
    attrs_.emplace_back(spec);
    return builder_.Attr(spec), *this;
  }
  OpDefBuilder& Input(absl::string_view spec) {
    inputs_.emplace_back(spec);
    return builder_.Input(spec), *this;
  }
  OpDefBuilder& Output(absl::string_view spec) {
    outputs_.emplace_back(spec);
    return builder_.Output(spec), *this;
  }
  OpDefBuilder& SetIsCommutative() { return builder_.SetIsCommutative(), *this; }
  OpDefBuilder& SetIsAggregate() { return builder_.SetIsAggregate(), *this; }
  OpDefBuilder& SetIsStateful() { return builder_.SetIsStateful(), *this; }
  OpDefBuilder& SetDoNotOptimize() { return SetIsStateful(); }
  OpDefBuilder& SetAllowsUninitializedInput() {
    return builder_.SetAllowsUninitializedInput(), *this;
  }
  OpDefBuilder& SetIsDistributedCommunication() { return is_distributed_ = true, *this; }
  OpDefBuilder& Deprecated(int version, absl::string_view explanation) {
    return builder_.Deprecated(version, explanation), *this;
  }
  OpDefBuilder& Doc(absl::string_view text);
  OpDefBuilder& SetShapeFn(OpShapeInferenceFn fn);
  // No effect: an attribute of type `type` already allows all types.
  OpDefBuilder& AllowAttrTypeAny() { return *this; }

  // Returns INVALID_ARGUMENT, with TensorFlow's message, if a spec is invalid or contradicts
  // another spec.
  absl::Status Finalize(OpRegistrationData* op_reg_data) const;

 private:
  // Returns the faults of the specs, one per line; "" if there are none.
  std::string SpecFaults() const;

  std::string name_;
  std::vector<std::string> attrs_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  // Builds under another name, because TensorFlow checks names only in ValidateOpDef.
  gradflow::OpDefBuilder builder_;
  OpShapeInferenceFn shape_fn_;
  bool is_distributed_ = false;
  bool has_doc_ = false;
  absl::Status status_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_DEF_BUILDER_H_
