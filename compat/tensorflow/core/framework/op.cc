#include "tensorflow/core/framework/op.h"

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

// State of registrations in addition to the registry.
struct Registrations {
  std::mutex mutex;
  std::map<std::string, OpShapeInferenceFn> shape_fns;
  // Kernels registered before their ops: the order of static initialisers of two files is
  // undefined.
  std::map<std::string, std::vector<gradflow::KernelRegistration>> early_kernels;
};

Registrations& GetRegistrations() {
  static auto* registrations = new Registrations;
  return *registrations;
}

// The shape function of all ops registered here. Looks the op's function up by name, as the
// registry stores function pointers only.
absl::Status CallShapeFn(gradflow::ShapeContext& context) {
  const OpShapeInferenceFn* fn;
  {
    Registrations& registrations = GetRegistrations();
    const std::lock_guard<std::mutex> lock(registrations.mutex);
    // The pointer stays valid: functions are never removed.
    fn = &registrations.shape_fns.at(context.def().op());
  }
  shape_inference::InferenceContext c(context);
  absl::Status status = (*fn)(&c);
  status.Update(c.status());
  return status;
}

void Report(const absl::Status& status) {
  if (!status.ok()) LOG(ERROR) << "registration failed: " << status;
}

}  // namespace

OpRegistry::Handle OpRegistry::Global() {
  static const auto* registry = new OpRegistry(gradflow::GlobalRegistry());
  return Handle(registry);
}

absl::Status OpRegistry::LookUpOpDef(const std::string& name, const OpDef** op_def) const {
  const absl::StatusOr<const gradflow::OpRegistration*> op = registry_.LookUpOp(name);
  if (!op.ok()) return op.status();
  *op_def = &(*op)->def();
  return absl::OkStatus();
}

namespace register_op {

OpRegistrar::OpRegistrar(const OpDefBuilderWrapper& wrapper) {
  auto def = std::make_unique<gradflow::OpDef>();
  if (absl::Status status = wrapper.builder_.Finalize(def.get()); !status.ok()) {
    Report(status);
    return;
  }
  Registrations& registrations = GetRegistrations();
  std::vector<gradflow::KernelRegistration> kernels;
  {
    // Locked until shape_fns has the function: other threads may call it once the op is registered.
    const std::lock_guard<std::mutex> lock(registrations.mutex);
    const absl::Status status = gradflow::GlobalRegistry().RegisterOp(
        std::move(def), wrapper.shape_fn_ == nullptr ? nullptr : CallShapeFn);
    Report(status);
    if (!status.ok()) return;
    registrations.shape_fns[wrapper.name_] = wrapper.shape_fn_;
    if (auto early = registrations.early_kernels.extract(wrapper.name_)) {
      kernels = std::move(early.mapped());
    }
  }
  for (gradflow::KernelRegistration& kernel : kernels) {
    Report(gradflow::GlobalRegistry().RegisterKernel(std::move(kernel)));
  }
}

}  // namespace register_op

KernelRegistrar::KernelRegistrar(const KernelDefBuilder& builder, gradflow::KernelFactory factory) {
  gradflow::KernelRegistration kernel = builder.kernel_;
  kernel.factory = factory;
  if (kernel.device == DEVICE_DEFAULT) {
    // A fallback: lowest priority.
    kernel.device = DEVICE_CPU;
    kernel.priority = std::numeric_limits<int>::min();
  }
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
