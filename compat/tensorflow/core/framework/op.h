// REGISTER_OP: registers an op with GlobalRegistry() during static initialisation of the program or
// of the library that contains it. OpRegistry: looks up ops.
//
//   REGISTER_OP("ZeroOut")
//       .Input("to_zero: int32")
//       .Output("zeroed: int32")
//       .SetShapeFn([](shape_inference::InferenceContext* c) { ... });
//
// Registration errors are reported by LOG(ERROR). If an op is already registered,
// GlobalRegistry().status() also keeps the error.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/macros.h"

namespace gradflow {
class Registry;
}  // namespace gradflow

namespace tensorflow {

// Looks up ops.
class OpRegistryInterface {
 public:
  virtual ~OpRegistryInterface() = default;
  // Return NOT_FOUND if the op does not exist.
  virtual absl::Status LookUp(const std::string& op_type_name,
                              const OpRegistrationData** op_reg_data) const = 0;
  absl::Status LookUpOpDef(const std::string& op_type_name, const OpDef** op_def) const;
};

// A registry of ops. Global() wraps gradflow::GlobalRegistry() and converts to it, for the
// constructor of Graph. Thread-safe. Results of look-ups are valid for the lifetime of the
// registry.
class OpRegistry : public OpRegistryInterface {
 public:
  class Handle {
   public:
    OpRegistry* operator->() const { return registry_; }
    OpRegistry& operator*() const { return *registry_; }
    operator OpRegistry*() const { return registry_; }                            // NOLINT
    operator const gradflow::Registry&() const { return *registry_->registry_; }  // NOLINT

   private:
    friend class OpRegistry;
    explicit Handle(OpRegistry* registry) : registry_(registry) {}
    OpRegistry* registry_;
  };
  static Handle Global();

  // Creates a registry without ops. Sessions do not use it.
  OpRegistry();
  ~OpRegistry() override;
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // Registers the op that `factory` defines. Errors are logged and returned by
  // ProcessRegistrations, unless the watcher returns another status.
  using OpRegistrationDataFactory = std::function<absl::Status(OpRegistrationData*)>;
  void Register(const OpRegistrationDataFactory& factory);
  // Called after each registration with its status and definition.
  using Watcher = std::function<absl::Status(const absl::Status&, const OpDef&)>;
  absl::Status SetWatcher(const Watcher& watcher);
  absl::Status ProcessRegistrations() const;

  absl::Status LookUp(const std::string& op_type_name,
                      const OpRegistrationData** op_reg_data) const override;
  // Returns null if the op does not exist.
  const OpRegistrationData* LookUp(const std::string& op_type_name) const;
  // Return all ops, sorted by name, with or without ops whose names begin with '_'.
  void Export(bool include_internal, OpList* ops) const;
  std::string DebugString(bool include_internal) const;
  void GetRegisteredOps(std::vector<OpDef>* op_defs) const;

 private:
  struct Ops;
  explicit OpRegistry(gradflow::Registry* registry);

  // Null for a registry that holds its ops itself.
  gradflow::Registry* const registry_;
  const std::unique_ptr<Ops> ops_;
};

// The ops of a list. Copies the list.
class OpListOpRegistry : public OpRegistryInterface {
 public:
  explicit OpListOpRegistry(const OpList* op_list);
  absl::Status LookUp(const std::string& op_type_name,
                      const OpRegistrationData** op_reg_data) const override;
  const OpRegistrationData* LookUp(const std::string& op_type_name) const;

 private:
  std::map<std::string, OpRegistrationData> ops_;
};

namespace register_op {

// Collects the definition of an op.
class OpDefBuilderWrapper {
 public:
  explicit OpDefBuilderWrapper(absl::string_view name) : builder_(name) {}
  OpDefBuilderWrapper& Attr(absl::string_view spec) { return builder_.Attr(spec), *this; }
  OpDefBuilderWrapper& Input(absl::string_view spec) { return builder_.Input(spec), *this; }
  OpDefBuilderWrapper& Output(absl::string_view spec) { return builder_.Output(spec), *this; }
  OpDefBuilderWrapper& SetIsCommutative() { return builder_.SetIsCommutative(), *this; }
  OpDefBuilderWrapper& SetIsAggregate() { return builder_.SetIsAggregate(), *this; }
  OpDefBuilderWrapper& SetIsStateful() { return builder_.SetIsStateful(), *this; }
  OpDefBuilderWrapper& SetDoNotOptimize() { return builder_.SetDoNotOptimize(), *this; }
  OpDefBuilderWrapper& SetIsDistributedCommunication() {
    return builder_.SetIsDistributedCommunication(), *this;
  }
  OpDefBuilderWrapper& SetAllowsUninitializedInput() {
    return builder_.SetAllowsUninitializedInput(), *this;
  }
  OpDefBuilderWrapper& Deprecated(int version, absl::string_view explanation) {
    return builder_.Deprecated(version, explanation), *this;
  }
  OpDefBuilderWrapper& Doc(absl::string_view text) { return builder_.Doc(text), *this; }
  OpDefBuilderWrapper& SetShapeFn(OpShapeInferenceFn fn) {
    return builder_.SetShapeFn(std::move(fn)), *this;
  }
  // No effect: gradflow infers no full types.
  template <typename Fn>
  OpDefBuilderWrapper& SetTypeConstructor(Fn&&) {
    return *this;
  }
  template <typename Fn>
  OpDefBuilderWrapper& SetForwardTypeFn(Fn&&) {
    return *this;
  }
  template <typename Fn>
  OpDefBuilderWrapper& SetReverseTypeFn(int, Fn&&) {
    return *this;
  }
  const ::tensorflow::OpDefBuilder& builder() const { return builder_; }

 private:
  ::tensorflow::OpDefBuilder builder_;
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
