// REGISTER_OP: registers an op with GlobalRegistry() during static initialisation of the program or
// of the library that contains it. OpRegistry: looks up ops.
//
//   REGISTER_OP("ZeroOut")
//       .Input("to_zero: int32")
//       .Output("zeroed: int32")
//       .SetShapeFn([](shape_inference::InferenceContext* c) { ... });
//
// Errors of registrations are reported by LOG(ERROR). Those of ops that are already registered are
// also kept in GlobalRegistry().status().
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_H_

#include <string>
#include <utility>

#include "gradflow/core/op_def_builder.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/macros.h"

namespace gradflow {
class OpDef;
class Registry;
}  // namespace gradflow

namespace tensorflow {

using gradflow::OpDef;

// The registry of ops: gradflow::GlobalRegistry(), to which it converts, for the constructor of
// Graph.
class OpRegistry {
 public:
  class Handle {
   public:
    const OpRegistry* operator->() const { return registry_; }
    const OpRegistry& operator*() const { return *registry_; }
    operator const OpRegistry*() const { return registry_; }                     // NOLINT
    operator const gradflow::Registry&() const { return registry_->registry_; }  // NOLINT

   private:
    friend class OpRegistry;
    explicit Handle(const OpRegistry* registry) : registry_(registry) {}
    const OpRegistry* registry_;
  };
  static Handle Global();

  // Returns NOT_FOUND, suggesting similar names, if there is no such op.
  absl::Status LookUpOpDef(const std::string& name, const OpDef** op_def) const;

 private:
  explicit OpRegistry(const gradflow::Registry& registry) : registry_(registry) {}
  const gradflow::Registry& registry_;
};
using OpRegistryInterface = OpRegistry;

namespace register_op {

// Collects the definition of an op.
class OpDefBuilderWrapper {
 public:
  explicit OpDefBuilderWrapper(StringPiece name) : name_(name), builder_(name) {}
  OpDefBuilderWrapper& Attr(StringPiece spec) { return builder_.Attr(spec), *this; }
  OpDefBuilderWrapper& Input(StringPiece spec) { return builder_.Input(spec), *this; }
  OpDefBuilderWrapper& Output(StringPiece spec) { return builder_.Output(spec), *this; }
  OpDefBuilderWrapper& SetIsCommutative() { return builder_.SetIsCommutative(), *this; }
  OpDefBuilderWrapper& SetIsAggregate() { return builder_.SetIsAggregate(), *this; }
  OpDefBuilderWrapper& SetIsStateful() { return builder_.SetIsStateful(), *this; }
  OpDefBuilderWrapper& SetAllowsUninitializedInput() {
    return builder_.SetAllowsUninitializedInput(), *this;
  }
  OpDefBuilderWrapper& Deprecated(int version, StringPiece explanation) {
    return builder_.Deprecated(version, explanation), *this;
  }
  OpDefBuilderWrapper& Doc(StringPiece text) { return builder_.Doc(text), *this; }
  OpDefBuilderWrapper& SetShapeFn(OpShapeInferenceFn fn) {
    return shape_fn_ = std::move(fn), *this;
  }

 private:
  friend struct OpRegistrar;
  std::string name_;
  gradflow::OpDefBuilder builder_;
  OpShapeInferenceFn shape_fn_;
};

// Registers the definition that a builder has collected.
struct OpRegistrar {
  OpRegistrar(const OpDefBuilderWrapper& wrapper);  // NOLINT: for REGISTER_OP
};

}  // namespace register_op
}  // namespace tensorflow

#define REGISTER_OP(name) GRADFLOW_COMPAT_REGISTER_OP(__COUNTER__, name)
#define GRADFLOW_COMPAT_REGISTER_OP(counter, name) GRADFLOW_COMPAT_REGISTER_OP_IMPL(counter, name)
#define GRADFLOW_COMPAT_REGISTER_OP_IMPL(counter, name)                               \
  static const ::tensorflow::register_op::OpRegistrar gradflow_op_registrar_##counter \
      TF_ATTRIBUTE_UNUSED = ::tensorflow::register_op::OpDefBuilderWrapper(name)
#define REGISTER_SYSTEM_OP(name) REGISTER_OP(name)

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_H_
