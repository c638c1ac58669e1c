#include "tensorflow/core/framework/op.h"

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/io/plugin.h"
#include "tensorflow/core/framework/kernel_registry.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

// The state of registrations that is not part of the registry.
struct Registrations {
  std::mutex mutex;
  // Keyed by definition, because several registries may have an op of the same name.
  std::map<const OpDef*, OpShapeInferenceFn> shape_fns;
  // Kernels that were registered before their ops, because the order of static initialisers in
  // different files is undefined.
  std::map<std::string, std::vector<gradflow::KernelRegistration>> early_kernels;
};

Registrations& GetRegistrations() {
  static auto* registrations = new Registrations;
  return *registrations;
}

// The shape function of all ops registered here. Looks up the op's function, because the registry
// can only store function pointers.
absl::Status CallShapeFn(gradflow::ShapeContext& context) {
  const OpShapeInferenceFn* fn;
  {
    Registrations& registrations = GetRegistrations();
    const std::lock_guard<std::mutex> lock(registrations.mutex);
    const auto it = registrations.shape_fns.find(&context.op_def());
    if (it == registrations.shape_fns.end()) {
      return errors::Internal("op '", context.op_def().name(), "' has no shape function here");
    }
    // The pointer stays valid: functions are neither removed, nor replaced while their op exists.
    fn = &it->second;
  }
  shape_inference::InferenceContext c(context);
  absl::Status status = (*fn)(&c);
  status.Update(c.status());
  TF_RETURN_IF_ERROR(status);
  for (int i = 0; i < context.num_outputs(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.PlainShape(c.output(i)));
    context.set_output(i, std::move(shape));
  }
  return absl::OkStatus();
}

// Adds the op to a registry, with its shape function.
absl::Status AddOp(OpRegistrationData data, gradflow::Registry& registry) {
  Registrations& registrations = GetRegistrations();
  auto def = std::make_unique<OpDef>(std::move(data.op_def));
  const OpDef* const key = def.get();
  const bool has_fn = data.shape_inference_fn != nullptr;
  // Held until shape_fns contains the function, because other threads may call it as soon as the op
  // is registered.
  const std::lock_guard<std::mutex> lock(registrations.mutex);
  TF_RETURN_IF_ERROR(registry.RegisterOp(std::move(def), has_fn ? CallShapeFn : nullptr));
  // Overwrites the entry of a destroyed registry whose definition had the same address.
  if (has_fn) registrations.shape_fns[key] = std::move(data.shape_inference_fn);
  return absl::OkStatus();
}

absl::Status RegisterWithGradflow(OpRegistrationData data) {
  const std::string name = data.op_def.name();
  Registrations& registrations = GetRegistrations();
  std::vector<gradflow::KernelRegistration> kernels;
  TF_RETURN_IF_ERROR(AddOp(std::move(data), gradflow::GlobalRegistry()));
  {
    const std::lock_guard<std::mutex> lock(registrations.mutex);
    if (auto early = registrations.early_kernels.extract(name)) {
      kernels = std::move(early.mapped());
    }
  }
  absl::Status status;
  for (gradflow::KernelRegistration& kernel : kernels) {
    status.Update(gradflow::GlobalRegistry().RegisterKernel(std::move(kernel)));
  }
  return status;
}

// Returns the shape function of an op in gradflow's registry; empty if the op has no shape
// function.
OpShapeInferenceFn ShapeFnOf(const gradflow::OpRegistration& op) {
  if (op.shape_fn() == nullptr) return nullptr;
  if (op.shape_fn() == CallShapeFn) {
    Registrations& registrations = GetRegistrations();
    const std::lock_guard<std::mutex> lock(registrations.mutex);
    const auto it = registrations.shape_fns.find(&op.def());
    return it == registrations.shape_fns.end() ? nullptr : it->second;
  }
  return [&op](shape_inference::InferenceContext* c) {
    return shape_inference::CallPlainShapeFn(op.shape_fn(), op.def(), c);
  };
}

}  // namespace

bool shape_inference::HasPlainShapeFn(const std::string& op_name) {
  const absl::StatusOr<const gradflow::OpRegistration*> op =
      gradflow::GlobalRegistry().LookUpOp(op_name);
  return op.ok() && (*op)->shape_fn() != nullptr && (*op)->shape_fn() != CallShapeFn;
}

namespace {

absl::Status NotRegistered(const std::string& name, absl::string_view hint) {
  return errors::NotFound("Op type not registered '", name, "'", hint.empty() ? "" : ": ", hint);
}

void Report(const absl::Status& status) {
  if (!status.ok()) LOG(ERROR) << "registration failed: " << status;
}

}  // namespace

absl::Status OpRegistryInterface::LookUpOpDef(const std::string& op_type_name,
                                              const OpDef** op_def) const {
  *op_def = nullptr;
  const OpRegistrationData* data = nullptr;
  TF_RETURN_IF_ERROR(LookUp(op_type_name, &data));
  *op_def = &data->op_def;
  return absl::OkStatus();
}

struct OpRegistry::Ops {
  std::mutex mutex;
  // The registered ops. For gradflow's registry, the ops that have been looked up.
  std::map<std::string, OpRegistrationData> ops;
  Watcher watcher;
  // The first error.
  absl::Status status;
};

OpRegistry::Handle OpRegistry::Global() {
  static auto* registry = new OpRegistry(&gradflow::GlobalRegistry());
  return Handle(registry);
}

OpRegistry::OpRegistry() : OpRegistry(nullptr) {}
OpRegistry::OpRegistry(gradflow::Registry* registry)
    : registry_(registry), ops_(std::make_unique<Ops>()) {}
OpRegistry::~OpRegistry() = default;

void OpRegistry::Register(const OpRegistrationDataFactory& factory) {
  OpRegistrationData data;
  absl::Status status = factory(&data);
  const OpDef def = data.op_def;
  Watcher watcher;
  if (status.ok() && registry_ != nullptr) status = RegisterWithGradflow(std::move(data));
  {
    const std::lock_guard<std::mutex> lock(ops_->mutex);
    watcher = ops_->watcher;
    if (status.ok() && registry_ == nullptr && !ops_->ops.try_emplace(def.name(), data).second) {
      status = errors::AlreadyExists("op '", def.name(), "' is already registered");
    }
  }
  if (watcher != nullptr) status = watcher(status, def);
  Report(status);
  const std::lock_guard<std::mutex> lock(ops_->mutex);
  ops_->status.Update(status);
}

absl::Status OpRegistry::SetWatcher(const Watcher& watcher) {
  const std::lock_guard<std::mutex> lock(ops_->mutex);
  if (watcher != nullptr && ops_->watcher != nullptr) {
    return errors::AlreadyExists("the registry has a watcher already");
  }
  ops_->watcher = watcher;
  return absl::OkStatus();
}

absl::Status OpRegistry::ProcessRegistrations() const {
  const std::lock_guard<std::mutex> lock(ops_->mutex);
  return ops_->status;
}

absl::Status OpRegistry::LookUp(const std::string& op_type_name,
                                const OpRegistrationData** op_reg_data) const {
  *op_reg_data = nullptr;
  {
    const std::lock_guard<std::mutex> lock(ops_->mutex);
    const auto it = ops_->ops.find(op_type_name);
    if (it != ops_->ops.end()) {
      *op_reg_data = &it->second;
      return absl::OkStatus();
    }
  }
  if (registry_ == nullptr) return NotRegistered(op_type_name, "");
  const absl::StatusOr<const gradflow::OpRegistration*> op = registry_->LookUpOp(op_type_name);
  if (!op.ok()) return NotRegistered(op_type_name, op.status().message());
  OpRegistrationData data((*op)->def(), ShapeFnOf(**op));
  const std::lock_guard<std::mutex> lock(ops_->mutex);
  *op_reg_data = &ops_->ops.try_emplace(op_type_name, std::move(data)).first->second;
  return absl::OkStatus();
}

const OpRegistrationData* OpRegistry::LookUp(const std::string& op_type_name) const {
  const OpRegistrationData* data = nullptr;
  LookUp(op_type_name, &data).IgnoreError();
  return data;
}

void OpRegistry::GetRegisteredOps(std::vector<OpDef>* op_defs) const {
  op_defs->clear();
  if (registry_ != nullptr) {
    for (const gradflow::OpRegistration* op : registry_->Ops()) op_defs->push_back(op->def());
    return;
  }
  const std::lock_guard<std::mutex> lock(ops_->mutex);
  for (const auto& [name, data] : ops_->ops) op_defs->push_back(data.op_def);
}

void OpRegistry::Export(bool include_internal, OpList* ops) const {
  ops->Clear();
  std::vector<OpDef> defs;
  GetRegisteredOps(&defs);
  for (OpDef& def : defs) {
    if (include_internal || def.name().empty() || def.name()[0] != '_') {
      *ops->add_op() = std::move(def);
    }
  }
}

std::string OpRegistry::DebugString(bool include_internal) const {
  OpList ops;
  Export(include_internal, &ops);
  std::string text;
  for (const OpDef& def : ops.op()) absl::StrAppend(&text, SummarizeOpDef(def), "\n");
  return text;
}

OpListOpRegistry::OpListOpRegistry(const OpList* op_list) {
  for (const OpDef& def : op_list->op()) ops_.try_emplace(def.name(), def);
}

absl::Status OpListOpRegistry::LookUp(const std::string& op_type_name,
                                      const OpRegistrationData** op_reg_data) const {
  *op_reg_data = LookUp(op_type_name);
  return *op_reg_data != nullptr ? absl::OkStatus() : NotRegistered(op_type_name, "");
}

const OpRegistrationData* OpListOpRegistry::LookUp(const std::string& op_type_name) const {
  const auto it = ops_.find(op_type_name);
  return it == ops_.end() ? nullptr : &it->second;
}

namespace register_op {

OpRegistrar::OpRegistrar(const OpDefBuilderWrapper& wrapper) {
  const auto add = [builder = wrapper.builder()](gradflow::Registry& registry) {
    OpRegistrationData data;
    const absl::Status status = builder.Finalize(&data);
    Report(status);
    // Clears the name so that the registry rejects the op.
    if (!status.ok()) data.op_def.clear_name();
    AddOp(std::move(data), registry).IgnoreError();
  };
  if (gradflow::internal::AddOpToPlugin(add)) return;
  OpRegistry::Global()->Register(
      [&](OpRegistrationData* data) { return wrapper.builder().Finalize(data); });
}

}  // namespace register_op

KernelRegistrar::KernelRegistrar(const KernelDefBuilder& builder, absl::string_view class_name,
                                 gradflow::KernelFactory factory, OpKernelFactory make) {
  gradflow::KernelRegistration kernel = builder.kernel_;
  const std::unique_ptr<KernelDef> def(const_cast<KernelDef*>(builder.Build()));
  if (kernel.label == kJitKernelLabel) {
    kernel.label.clear();
    def->clear_label();
  }
  kernel.factory = factory;
  if (kernel.device == DEVICE_DEFAULT) {
    // The kernel is a fallback with the lowest priority.
    kernel.device = DEVICE_CPU;
    kernel.priority = std::numeric_limits<int>::min();
  }
  // The registry keeps the first error.
  const auto add = [kernel](gradflow::Registry& registry) {
    registry.RegisterKernel(kernel).IgnoreError();
  };
  if (gradflow::internal::AddKernelToPlugin(add)) return;
  compat_internal::AddKernel(*def, class_name, make);
  Registrations& registrations = GetRegistrations();
  {
    const std::lock_guard<std::mutex> lock(registrations.mutex);
    if (gradflow::GlobalRegistry().FindOp(kernel.op) == nullptr) {
      registrations.early_kernels[kernel.op].push_back(std::move(kernel));
      return;
    }
  }
  Report(gradflow::GlobalRegistry().RegisterKernel(std::move(kernel)));
}

}  // namespace tensorflow
