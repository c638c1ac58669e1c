// Registry: the registered ops and their kernels.
//
//   void RegisterMatMul(Registry& registry) {
//     registry.Op("MatMul")
//         .Input("a: T").Input("b: T").Output("product: T")
//         .Attr("transpose_a: bool = false").Attr("T: {float, double}")
//         .Doc("Multiplies matrix `a` by matrix `b`.").Shape(MatMulShape);
//     registry.Kernel("MatMul", MakeKernel<MatMulKernel<float>>).Type<float>("T");
//   }
//
// Pointers to registrations are valid while the registry lives. status() returns the first error of
// a registration, such as a spec that does not parse or an op that is registered twice.
//
// Thread-safe.
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
#include "absl/types/span.h"
#include "gradflow/core/op_def_builder.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class NodeDef;
class OpDef;

// Properties of the generated C++ class of an op, its wrapper (codegen/).
struct OpApi {
  // The name of the wrapper's header: "math_ops" for ops/math_ops.h.
  std::string group;
  // Further names of the wrapper class in TensorFlow's C++ API: "Stack" for Pack.
  std::vector<std::string> aliases;
  // Arguments and attributes that TensorFlow's C++ API renames: {name in the definition, C++ name}.
  std::vector<std::pair<std::string, std::string>> renames;
  // True if no class is generated: it is hand-written, or none exists.
  bool hand_written = false;
};

// The relation of an op to the functions of a graph. The runtime executes all ops except kNone
// itself, so these ops have no kernels.
enum class FunctionalOp {
  // An op with kernels.
  kNone,
  // Calls a function: PartitionedCall, StatefulPartitionedCall, and each function that is an op.
  kCall,
  // Call one or several functions, as their names say: If, Case, While, For.
  kIf,
  kCase,
  kWhile,
  kFor,
  // An argument and a result of a function: _Arg, _Retval.
  kArg,
  kRetval,
};

// One registered op. Immutable once registered.
class OpRegistration {
 public:
  // Called by Registry::RegisterOp.
  OpRegistration(std::unique_ptr<OpDef> def, ShapeFn shape_fn, OpApi api,
                 FunctionalOp functional = FunctionalOp::kNone);
  ~OpRegistration();
  // The registered definition, shape function and wrapper properties.
  const OpDef& def() const { return *def_; }
  ShapeFn shape_fn() const { return shape_fn_; }
  const OpApi& api() const { return api_; }
  FunctionalOp functional() const { return functional_; }

 private:
  std::unique_ptr<OpDef> def_;
  ShapeFn shape_fn_;
  OpApi api_;
  FunctionalOp functional_;
};

// One registered kernel.
struct KernelRegistration {
  // The op that the kernel computes, and the type of device it runs on.
  std::string op;
  std::string device = "CPU";
  // The allowed types of type attributes: {attribute, types}. Every element of a list(type)
  // attribute must be allowed. Attributes that are not listed allow all types except resource and
  // variant. Kernels that allow these list all types: Types("T", AllDataTypes()).
  std::vector<std::pair<std::string, DataTypeVector>> type_constraints;
  // Matches only nodes whose attribute _kernel has this value.
  std::string label;
  // Among the matching kernels, the one with the highest priority is chosen.
  int priority = 0;
  KernelFactory factory = nullptr;
};

// Returns the device type that a node's device string names: "GPU" for "/job:a/device:GPU:0" and
// "/gpu:0". Returns "CPU" if the string names no type.
std::string DeviceType(absl::string_view device);

class Registry {
 public:
  // Collects the definition of an op and registers it at the end of the full expression.
  class OpRegistrar {
   public:
    // Called by Registry::Op. The destructor registers the op.
    OpRegistrar(Registry* registry, absl::string_view name);
    OpRegistrar(OpRegistrar&& other) noexcept;
    ~OpRegistrar();
    // See OpDefBuilder.
    OpRegistrar& Input(absl::string_view spec) { return builder_.Input(spec), *this; }
    OpRegistrar& Output(absl::string_view spec) { return builder_.Output(spec), *this; }
    OpRegistrar& Attr(absl::string_view spec) { return builder_.Attr(spec), *this; }
    OpRegistrar& Commutative() { return builder_.SetIsCommutative(), *this; }
    OpRegistrar& Aggregate() { return builder_.SetIsAggregate(), *this; }
    OpRegistrar& Stateful() { return builder_.SetIsStateful(), *this; }
    OpRegistrar& Deprecated(int version, absl::string_view why) {
      return builder_.Deprecated(version, why), *this;
    }
    OpRegistrar& Doc(absl::string_view text) { return builder_.Doc(text), *this; }
    // Sets the function that infers the shapes of the outputs.
    OpRegistrar& Shape(ShapeFn fn) { return shape_fn_ = fn, *this; }
    // Makes the runtime execute the op itself. The op then has no kernels.
    OpRegistrar& Functional(FunctionalOp kind) { return functional_ = kind, *this; }
    // Set the members of OpApi. `group` is a group in codegen/CMakeLists.txt, such as "math_ops",
    // or a plugin's own group.
    OpRegistrar& Group(absl::string_view group) { return api_.group = std::string(group), *this; }
    OpRegistrar& Alias(absl::string_view name) { return api_.aliases.emplace_back(name), *this; }
    OpRegistrar& Rename(absl::string_view from, absl::string_view to) {
      return api_.renames.emplace_back(from, to), *this;
    }
    OpRegistrar& HandWritten() { return api_.hand_written = true, *this; }

   private:
    Registry* registry_;
    OpDefBuilder builder_;
    ShapeFn shape_fn_ = nullptr;
    FunctionalOp functional_ = FunctionalOp::kNone;
    OpApi api_;
  };

  // Collects the properties of a kernel and registers it at the end of the full expression.
  class KernelBuilder {
   public:
    // Called by Registry::Kernel. The destructor registers the kernel.
    KernelBuilder(Registry* registry, absl::string_view op, KernelFactory factory);
    KernelBuilder(KernelBuilder&& other) noexcept;
    ~KernelBuilder();
    template <typename T>
    KernelBuilder& Type(absl::string_view attr) {
      return Types(attr, {DataTypeToEnum<T>::value});
    }
    // Restricts the kernel to nodes whose type attribute `attr` is one of `types`.
    KernelBuilder& Types(absl::string_view attr, DataTypeVector types) {
      return kernel_.type_constraints.emplace_back(attr, std::move(types)), *this;
    }
    // Set the members of KernelRegistration.
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

  // Starts the registration of an op, or of a kernel of a registered op.
  OpRegistrar Op(absl::string_view name) { return OpRegistrar(this, name); }
  KernelBuilder Kernel(absl::string_view op, KernelFactory factory) {
    return KernelBuilder(this, op, factory);
  }
  // Registers an op or a kernel without a builder. Returns ALREADY_EXISTS if the op is already
  // registered, NOT_FOUND if the kernel's op is not registered, and INVALID_ARGUMENT if the
  // definition or the kernel is invalid.
  absl::Status RegisterOp(std::unique_ptr<OpDef> def, ShapeFn shape_fn, OpApi api = {},
                          FunctionalOp functional = FunctionalOp::kNone);
  absl::Status RegisterKernel(KernelRegistration kernel);
  // Calls add(additions), then moves the contents of `additions` to this registry. `add` may
  // register kernels of ops of this registry. On error, returns the first error, adds nothing and
  // leaves status() unchanged.
  absl::Status RegisterAllOrNothing(absl::FunctionRef<void(Registry& additions)> add);

  // Returns null if the op is not registered.
  const OpRegistration* FindOp(absl::string_view name) const;
  // Returns NOT_FOUND, "op 'Foo' is not registered; did you mean 'For'?", if the op is not
  // registered. If the build leaves the op out, the error states how to add it.
  absl::StatusOr<const OpRegistration*> LookUpOp(absl::string_view name) const;
  // Returns all ops, sorted by name.
  std::vector<const OpRegistration*> Ops() const;
  // Sets the names of ops that exist but are not part of this build. They must outlive the
  // registry.
  void SetLeftOutOps(absl::Span<const char* const> names);

  // Returns the kernel that matches the node's device type ("" means CPU), types and label. Returns
  // UNIMPLEMENTED with a list of the op's kernels if no kernel matches, and INVALID_ARGUMENT if
  // several kernels match with the same priority. REQUIRES: the node's attributes have been
  // validated.
  absl::StatusOr<const KernelRegistration*> FindKernel(const NodeDef& node) const;

  // Returns the first error of a registration, or OK.
  absl::Status status() const;

 private:
  struct Tables;
  // Looks the op up in this registry, then in base_.
  const OpRegistration* FindOpOrBase(absl::string_view name) const;

  // For the registry that RegisterAllOrNothing passes to `add`: the registry that it adds to. Null
  // otherwise.
  const Registry* base_ = nullptr;
  std::unique_ptr<Tables> tables_;
};

// Returns the default registry, with all ops of the library and all ops that the program adds. The
// first call creates it and registers the ops, without static initializers. The build generates the
// definition from the families of ops/ (ops/register.cc.in).
Registry& GlobalRegistry();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_REGISTRY_H_
