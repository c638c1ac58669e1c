// The kernels that the program has registered, for callers that create kernels without a session.
#include "tensorflow/core/framework/kernel_registry.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/context_free_kernel.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "tensorflow/core/framework/kernel_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace compat_internal {

// A kernel of gradflow.
class LibraryKernel final : public OpKernel {
 public:
  LibraryKernel(OpKernelConstruction* context, const OpDef& op,
                std::unique_ptr<gradflow::OpKernel> kernel)
      : OpKernel(context),
        kernel_(std::move(kernel)),
        c_kernel_(dynamic_cast<const gradflow::ContextFreeKernel*>(kernel_.get())) {
    const int num_args = op.input_arg_size();
    if (op.output_arg().empty() && num_args > 0 &&
        !op.input_arg(num_args - 1).type_list_attr().empty()) {
      int stop;
      context->SetStatus(InputRange(op.input_arg(num_args - 1).name(), &open_from_, &stop));
    }
  }
  void Compute(OpKernelContext* context) override {
    if (context == nullptr) {
      if (c_kernel_ != nullptr) c_kernel_->ComputeWithoutContext();
      return;
    }
    OP_REQUIRES_OK(context, Check(*context));
    context->SetStatus(kernel_->Compute(*context->context_));
    for (bool& is_set : context->is_set_) is_set = true;
  }
  bool IsExpensive() override { return !kernel_->IsCheap(); }

 private:
  // Checks what a session would have checked, because the context comes from the program.
  absl::Status Check(const OpKernelContext& context) const {
    const bool inputs_fit =
        open_from_ >= 0 ? context.num_inputs() >= open_from_ : context.num_inputs() == num_inputs();
    if (!inputs_fit || context.num_outputs() != num_outputs()) {
      return errors::InvalidArgument("the context has ", context.num_inputs(), " inputs and ",
                                     context.num_outputs(), " outputs, expected ", num_inputs(),
                                     " and ", num_outputs());
    }
    for (int i = open_from_; i >= 0 && i < context.num_inputs(); ++i) {
      if (context.context_->input(i).dtype() == DT_INVALID) {
        return errors::InvalidArgument("input ", i, " is not there");
      }
    }
    const int num_checked = open_from_ >= 0 ? open_from_ : num_inputs();
    for (int i = 0; i < num_checked; ++i) {
      // TF_GetInput() reports inputs that are not there.
      if (c_kernel_ != nullptr && context.context_->input(i).dtype() == DT_INVALID) continue;
      if (IsRefType(input_type(i))) {
        return errors::Unimplemented("input ", i,
                                     " is a reference to a variable, which gradflow's kernels take "
                                     "in a session");
      }
      if (context.context_->input(i).dtype() != input_type(i)) {
        return errors::InvalidArgument("input ", i, " has type ",
                                       DataTypeString(context.context_->input(i).dtype()),
                                       ", expected ", DataTypeString(input_type(i)));
      }
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<gradflow::OpKernel> kernel_;
  // The same kernel if it is a kernel in C, or null.
  const gradflow::ContextFreeKernel* const c_kernel_;
  // If a kernel has no outputs and its last argument is a list of any types, such as SaveV2, it
  // takes all remaining tensors of the context, as in TensorFlow. This is the index of the first
  // one, or -1.
  int open_from_ = -1;
};

}  // namespace compat_internal

namespace {

struct Kernel {
  KernelDef def;
  std::string class_name;
  OpKernelFactory make;
};

struct Kernels {
  std::mutex mutex;
  // Keyed by op, in the order of registration. Entries are never removed.
  std::map<std::string, std::deque<Kernel>, std::less<>> kernels;
};

Kernels& AllKernels() {
  static auto* kernels = new Kernels;
  return *kernels;
}

// Returns the node's kernel that is registered for this type of device; null if there is none.
absl::StatusOr<const Kernel*> FindKernelOf(const DeviceType& device_type, const NodeDef& node) {
  const std::string& label = GetNodeAttrString(AttrSlice(node), "_kernel");
  Kernels& all = AllKernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto of_op = all.kernels.find(node.op());
  const Kernel* found = nullptr;
  if (of_op == all.kernels.end()) return found;
  for (const Kernel& kernel : of_op->second) {
    if (kernel.def.device_type() != device_type.type_string() || kernel.def.label() != label) {
      continue;
    }
    bool match;
    TF_RETURN_IF_ERROR(KernelAttrsMatch(kernel.def, node, &match));
    if (!match) continue;
    if (found != nullptr && found->def.priority() == kernel.def.priority()) {
      return errors::InvalidArgument(
          "Multiple OpKernel registrations match NodeDef '", FormatNodeDefForError(node), "': '",
          found->def.ShortDebugString(), "' and '", kernel.def.ShortDebugString(), "'");
    }
    if (found == nullptr || found->def.priority() < kernel.def.priority()) found = &kernel;
  }
  return found;
}

// Falls back to a kernel that is registered for all device types.
absl::StatusOr<const Kernel*> FindKernel(const DeviceType& device_type, const NodeDef& node) {
  absl::StatusOr<const Kernel*> found = FindKernelOf(device_type, node);
  if (found.ok() && *found == nullptr) return FindKernelOf(DEVICE_DEFAULT, node);
  return found;
}

absl::Status NoKernel(const DeviceType& device_type, const NodeDef& node) {
  return errors::NotFound("No registered '", node.op(), "' OpKernel for '",
                          device_type.type_string(), "' devices compatible with node ",
                          FormatNodeDefForError(node), ": ", KernelsRegisteredForOp(node.op()));
}

// Returns gradflow's kernel for the node, or NOT_FOUND.
absl::StatusOr<const gradflow::KernelRegistration*> FindLibraryKernel(const DeviceType& device_type,
                                                                      const NodeDef& node) {
  if (device_type == DEVICE_CPU) {
    absl::StatusOr<const gradflow::KernelRegistration*> kernel =
        gradflow::GlobalRegistry().FindKernel(node);
    if (kernel.ok() && (*kernel)->device == DEVICE_CPU) return kernel;
  } else {
    // Kernels in C may be for other devices. The registry has their names in upper case.
    const std::string& type = device_type.type_string();
    NodeDef on_device = node;
    on_device.set_device(absl::StrCat("/device:", type, ":0"));
    absl::StatusOr<const gradflow::KernelRegistration*> kernel =
        gradflow::GlobalRegistry().FindKernel(on_device);
    if (kernel.ok() && (*kernel)->device == absl::AsciiStrToUpper(type)) return kernel;
  }
  return NoKernel(device_type, node);
}

}  // namespace

namespace compat_internal {

void AddKernel(const KernelDef& def, absl::string_view class_name, OpKernelFactory make) {
  Kernels& all = AllKernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.kernels[def.op()].push_back(Kernel{def, std::string(class_name), make});
}

}  // namespace compat_internal

absl::StatusOr<std::unique_ptr<OpKernel>> CreateOpKernel(const DeviceType& device_type,
                                                         const NodeDef& node) {
  const gradflow::OpRegistration* const op = gradflow::GlobalRegistry().FindOp(node.op());
  if (op == nullptr) {
    return errors::NotFound("Op type not registered '", node.op(), "' in the program");
  }
  TF_RETURN_IF_ERROR(ValidateNodeDef(node, op->def()));
  DataTypeVector input_types, output_types;
  TF_RETURN_IF_ERROR(InOutTypesForNode(node, op->def(), &input_types, &output_types));
  const gradflow::KernelConstruction construction(node, op->def(), input_types, output_types);
  OpKernelConstruction context(construction);
  TF_RETURN_IF_ERROR(context.status());
  const absl::StatusOr<const Kernel*> found = FindKernel(device_type, node);
  TF_RETURN_IF_ERROR(found.status());
  std::unique_ptr<OpKernel> kernel;
  if (*found != nullptr) {
    kernel.reset((*found)->make(&context));
    TF_RETURN_IF_ERROR(context.status());
    return kernel;
  }
  const auto library = FindLibraryKernel(device_type, node);
  TF_RETURN_IF_ERROR(library.status());
  absl::StatusOr<std::unique_ptr<gradflow::OpKernel>> made = (*library)->factory(construction);
  TF_RETURN_IF_ERROR(made.status());
  return std::make_unique<compat_internal::LibraryKernel>(&context, op->def(), *std::move(made));
}

bool KernelDefAvailable(const DeviceType& device_type, const NodeDef& node) {
  const absl::StatusOr<const Kernel*> found = FindKernel(device_type, node);
  if (!found.ok()) return false;
  return *found != nullptr || FindLibraryKernel(device_type, node).ok();
}

absl::Status FindKernelDef(const DeviceType& device_type, const NodeDef& node,
                           const KernelDef** def, std::string* kernel_class_name) {
  const absl::StatusOr<const Kernel*> found = FindKernel(device_type, node);
  TF_RETURN_IF_ERROR(found.status());
  if (*found == nullptr) return NoKernel(device_type, node);
  if (def != nullptr) *def = &(*found)->def;
  if (kernel_class_name != nullptr) *kernel_class_name = (*found)->class_name;
  return absl::OkStatus();
}

absl::Status SupportedDeviceTypesForNode(const std::vector<DeviceType>& device_types,
                                         const NodeDef& node, PrioritizedDeviceTypeVector* devices,
                                         const DeviceNameUtils::ParsedName* local_address) {
  devices->clear();
  const gradflow::OpRegistration* const op = gradflow::GlobalRegistry().FindOp(node.op());
  for (const DeviceType& device_type : device_types) {
    const absl::StatusOr<const Kernel*> found = FindKernel(device_type, node);
    TF_RETURN_IF_ERROR(found.status());
    if (*found != nullptr) {
      devices->emplace_back(device_type, (*found)->def.priority());
    } else if (op != nullptr && FindLibraryKernel(device_type, node).ok()) {
      devices->emplace_back(device_type, 0);
    }
  }
  // A function runs on any device. The kernels of another machine are not known here. The address
  // is checked first, because the rest of the name may not parse.
  DeviceNameUtils::ParsedName requested;
  DeviceNameUtils::ParseFullName(node.device(), &requested);
  const bool is_remote = local_address != nullptr && !node.device().empty() &&
                         !DeviceNameUtils::IsSameAddressSpace(requested, *local_address);
  if (devices->empty() && (op == nullptr || is_remote)) {
    for (const DeviceType& device_type : device_types) devices->emplace_back(device_type, 0);
  }
  std::stable_sort(devices->begin(), devices->end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return absl::OkStatus();
}

absl::Status SupportedDeviceTypesForNode(const std::vector<DeviceType>& device_types,
                                         const NodeDef& node, DeviceTypeVector* devices) {
  PrioritizedDeviceTypeVector prioritized;
  TF_RETURN_IF_ERROR(SupportedDeviceTypesForNode(device_types, node, &prioritized));
  devices->clear();
  for (const auto& [device, priority] : prioritized) devices->push_back(device);
  return absl::OkStatus();
}

KernelList GetFilteredRegisteredKernels(const std::function<bool(const KernelDef&)>& predicate) {
  Kernels& all = AllKernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  KernelList list;
  for (const auto& [op, kernels] : all.kernels) {
    for (const Kernel& kernel : kernels) {
      if (predicate(kernel.def)) *list.add_kernel() = kernel.def;
    }
  }
  return list;
}

KernelList GetAllRegisteredKernels() {
  return GetFilteredRegisteredKernels([](const KernelDef&) { return true; });
}

KernelList GetRegisteredKernelsForOp(absl::string_view op_name) {
  return GetFilteredRegisteredKernels(
      [op_name](const KernelDef& kernel) { return kernel.op() == op_name; });
}

std::string KernelsRegisteredForOp(absl::string_view op_name) {
  std::string text;
  const KernelList list = GetRegisteredKernelsForOp(op_name);
  for (const KernelDef& kernel : list.kernel()) {
    absl::StrAppend(&text, "  ", kernel.ShortDebugString(), "\n");
  }
  return text.empty() ? "  <no registered kernels>\n" : text;
}

void LogAllRegisteredKernels() {
  const KernelList list = GetAllRegisteredKernels();
  for (const KernelDef& kernel : list.kernel()) {
    LOG(INFO) << "OpKernel ('" << kernel.ShortDebugString() << "')";
  }
}

}  // namespace tensorflow
