// Registry: which ops there are, and which kernels run them.
//
//   void RegisterMatMul(Registry& registry) {
//     registry.Op("MatMul")
//         .Input("a: T").Input("b: T").Output("product: T")
//         .Attr("transpose_a: bool = false").Attr("T: {float, double}")
//         .Doc("Multiplies matrix `a` by matrix `b`.").Shape(MatMulShape);
//     registry.Kernel("MatMul", MakeKernel<MatMulKernel<float>>).Type<float>("T");
//   }
//
// Thread-safe. Registrations stay as long as the registry: pointers to them stay valid. A fault in
// a registration (a spec that does not parse, an op twice) is kept and returned by status().
#ifndef GRADFLOW_CORE_REGISTRY_H_
#define GRADFLOW_CORE_REGISTRY_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_def_builder.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class NodeDef;
class OpDef;

// The C++ face of an op, which the wrapper generator reads beside its definition.
struct OpApi {
  // File of the wrapper: "math_ops" for ops/math_ops.h.
  std::string group;
  // Other names of the wrapper class, as TensorFlow's C++ API has them: "Stack" for Pack.
  std::vector<std::string> aliases;
  // Names in the C++ API of arguments and attributes that TensorFlow's API renames.
  std::vector<std::pair<std::string, std::string>> renames;
  // A hand-written class of this name exists instead of a generated one.
  bool hand_written = false;
};

// One registered op. Immutable once registered.
class OpRegistration {
 public:
  // Made by Registry::RegisterOp.
  OpRegistration(std::unique_ptr<OpDef> def, ShapeFn shape_fn, OpApi api);
  ~OpRegistration();
  // What was registered.
  const OpDef& def() const { return *def_; }
  ShapeFn shape_fn() const { return shape_fn_; }
  const OpApi& api() const { return api_; }

 private:
  std::unique_ptr<OpDef> def_;
  ShapeFn shape_fn_;
  OpApi api_;
};

// One registered kernel.
struct KernelRegistration {
  // Which op it computes, and on which type of device.
  std::string op;
  std::string device = "CPU";
  // Attribute -> types it may have; a list(type) attribute must have only these.
  std::vector<std::pair<std::string, DataTypeVector>> type_constraints;
  // Chosen only by nodes whose attribute _kernel has this value.
  std::string label;
  // Of several that fit, the highest runs.
  int priority = 0;
  KernelFactory factory = nullptr;
};

// The type of the device that a node's device string asks for: "GPU" of "/job:a/device:GPU:0" and
// of "/gpu:0". What says nothing of it is the CPU's.
std::string DeviceType(absl::string_view device);

class Registry {
 public:
  // Collects an op and registers it at the end of the full expression.
  class OpBuilder {
   public:
    // Made by Registry::Op, and registers when it is destroyed.
    OpBuilder(Registry* registry, absl::string_view name);
    OpBuilder(OpBuilder&& other) noexcept;
    ~OpBuilder();
    // As OpDefBuilder's.
    OpBuilder& Input(absl::string_view spec) { return builder_.Input(spec), *this; }
    OpBuilder& Output(absl::string_view spec) { return builder_.Output(spec), *this; }
    OpBuilder& Attr(absl::string_view spec) { return builder_.Attr(spec), *this; }
    OpBuilder& Commutative() { return builder_.SetIsCommutative(), *this; }
    OpBuilder& Aggregate() { return builder_.SetIsAggregate(), *this; }
    OpBuilder& Stateful() { return builder_.SetIsStateful(), *this; }
    OpBuilder& Doc(absl::string_view text) { return builder_.Doc(text), *this; }
    // Infers the shapes of the outputs.
    OpBuilder& Shape(ShapeFn fn) { return shape_fn_ = fn, *this; }
    // The file of the C++ wrapper ("array_ops", "math_ops", "nn_ops").
    OpBuilder& Group(absl::string_view group) { return api_.group = std::string(group), *this; }
    OpBuilder& Alias(absl::string_view name) { return api_.aliases.emplace_back(name), *this; }
    OpBuilder& Rename(absl::string_view from, absl::string_view to) {
      return api_.renames.emplace_back(from, to), *this;
    }
    OpBuilder& HandWritten() { return api_.hand_written = true, *this; }

   private:
    Registry* registry_;
    OpDefBuilder builder_;
    ShapeFn shape_fn_ = nullptr;
    OpApi api_;
  };

  // Collects a kernel and registers it at the end of the full expression.
  class KernelBuilder {
   public:
    // Made by Registry::Kernel, and registers when it is destroyed.
    KernelBuilder(Registry* registry, absl::string_view op, KernelFactory factory);
    KernelBuilder(KernelBuilder&& other) noexcept;
    ~KernelBuilder();
    template <typename T>
    KernelBuilder& Type(absl::string_view attr) {
      return Types(attr, {DataTypeToEnum<T>::value});
    }
    // For nodes whose type attribute `attr` is one of these.
    KernelBuilder& Types(absl::string_view attr, DataTypeVector types) {
      return kernel_.type_constraints.emplace_back(attr, std::move(types)), *this;
    }
    // As the members of KernelRegistration.
    KernelBuilder& Device(absl::string_view d) { return kernel_.device = std::string(d), *this; }
    KernelBuilder& Label(absl::string_view l) { return kernel_.label = std::string(l), *this; }
    KernelBuilder& Priority(int p) { return kernel_.priority = p, *this; }

   private:
    Registry* registry_;
    KernelRegistration kernel_;
  };

  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Begins an op, and a kernel of one that is registered.
  OpBuilder Op(absl::string_view name) { return OpBuilder(this, name); }
  KernelBuilder Kernel(absl::string_view op, KernelFactory factory) {
    return KernelBuilder(this, op, factory);
  }
  // The same without the chain. ALREADY_EXISTS, INVALID_ARGUMENT.
  absl::Status RegisterOp(std::unique_ptr<OpDef> def, ShapeFn shape_fn, OpApi api = {});
  absl::Status RegisterKernel(KernelRegistration kernel);
  // All that `add` registers with the registry it is given, which has this one's ops too, or, if
  // any of it has a fault, nothing: then status() stays as it was, and the fault is returned.
  absl::Status RegisterAllOrNothing(absl::FunctionRef<void(Registry& additions)> add);

  // Null if there is no such op.
  const OpRegistration* FindOp(absl::string_view name) const;
  // NOT_FOUND "op 'Foo' is not registered; did you mean 'For'?".
  absl::StatusOr<const OpRegistration*> LookUpOp(absl::string_view name) const;
  // All ops, by name.
  std::vector<const OpRegistration*> Ops() const;

  // The kernel for a node: for the type of device it asks for ("" and "CPU" are the CPU), its types
  // and its label. UNIMPLEMENTED, with the kernels there are, if none fits; INVALID_ARGUMENT if two
  // of the same priority do. REQUIRES: the node's attributes have been validated.
  absl::StatusOr<const KernelRegistration*> FindKernel(const NodeDef& node) const;

  // The first fault of a registration.
  absl::Status status() const;

 private:
  struct Tables;
  // In this one if it is there, or else in base_.
  const OpRegistration* FindOpOrBase(absl::string_view name) const;

  // What RegisterAllOrNothing adds to; null in all others.
  const Registry* base_ = nullptr;
  std::unique_ptr<Tables> tables_;
};

// The registry that programs use unless they bring their own: all ops of the library, and whatever
// the program adds. Defined in ops/register.cc, where every family is listed; so a program
// that links the library has all ops without static initialisers. Made on the first call.
Registry& GlobalRegistry();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_REGISTRY_H_
