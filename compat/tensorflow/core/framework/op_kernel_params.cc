// Contexts without a session, and reference inputs.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/variable.h"
#include "gradflow/io/file_access.h"
#include "tensorflow/core/framework/name_ranges.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace tensorflow {

struct OpKernelContext::RefMutex final : gradflow::ResourceBase {
  std::string DebugString() const override { return "mutex of a reference"; }
  mutex mu;
};

namespace {

// An uninitialised tensor.
Tensor NoTensor() { return Tensor(Tensor::Unset()); }

}  // namespace

struct OpKernelContext::Own {
  Own(const Params& from, int num_outputs) : params(from), resources(from.resource_manager) {
    for (size_t i = 0; i < params.inputs.size(); ++i) {
      values.push_back(params.inputs[i]);
      Tensor* const tensor = values.back().tensor;
      inputs.push_back(tensor != nullptr ? *tensor : NoTensor());
    }
    for (int i = 0; i < num_outputs; ++i) {
      outputs.push_back(NoTensor());
      output_types.push_back(params.op_kernel == nullptr ? DT_INVALID
                                                         : params.op_kernel->output_type(i));
    }
    run.step_id = params.step_id;
    run.files = &gradflow::FileAccess::All();
    context.emplace(absl::MakeSpan(inputs), absl::MakeSpan(outputs), output_types, run);
  }

  const Params params;
  ResourceMgr* const resources;
  std::vector<TensorValue> values;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  DataTypeVector output_types;
  gradflow::RunContext run;
  std::optional<gradflow::KernelContext> context;
};

OpKernelContext::OpKernelContext(const OpKernel& kernel, gradflow::KernelContext& context)
    : kernel_(&kernel),
      context_(&context),
      own_device_(std::in_place, context.run()),
      device_(&*own_device_),
      is_set_(context.num_outputs(), false) {}

OpKernelContext::OpKernelContext(Params* params)
    : OpKernelContext(params, params->op_kernel == nullptr ? 0 : params->op_kernel->num_outputs()) {
}

OpKernelContext::OpKernelContext(Params* params, int num_outputs)
    : own_(std::make_unique<Own>(*params, num_outputs)),
      kernel_(params->op_kernel),
      context_(&*own_->context),
      device_(params->device),
      frame_iter_(params->frame_iter),
      rendezvous_(params->rendezvous),
      cancellation_manager_(params->cancellation_manager),
      is_set_(num_outputs, false) {
  if (device_ == nullptr) device_ = &own_device_.emplace(own_->run);
}

OpKernelContext::~OpKernelContext() = default;

ResourceMgr* OpKernelContext::resource_manager() const {
  if (own_ != nullptr) return own_->resources;
  if (resources_ == nullptr && context_->resource_manager() != nullptr) {
    // Each session has one manager, among its resources.
    absl::StatusOr<std::shared_ptr<ResourceMgr>> found =
        context_->resource_manager()->LookupOrCreate<ResourceMgr>(
            gradflow::kReservedContainers, "resource_mgr",
            [] { return std::make_shared<ResourceMgr>(); });
    // Never returns null in a session. If the session is closed, the run fails, and the kernel gets
    // an empty manager until it returns.
    SetStatus(found.status());
    resources_ = found.ok() ? *std::move(found) : std::make_shared<ResourceMgr>();
  }
  return resources_.get();
}

ScopedStepContainer* OpKernelContext::step_container() const {
  return own_ != nullptr ? own_->params.step_container : nullptr;
}

const SessionMetadata* OpKernelContext::session_metadata() const {
  return own_ != nullptr ? own_->params.session_metadata : nullptr;
}

bool OpKernelContext::is_input_dead() const {
  return own_ != nullptr && own_->params.is_input_dead;
}

std::optional<absl::Time> OpKernelContext::deadline() const {
  return own_ != nullptr ? own_->params.deadline : std::nullopt;
}

std::function<void(std::function<void()>)>* OpKernelContext::runner() const {
  if (own_ != nullptr && own_->params.runner != nullptr) return own_->params.runner;
  static auto& at_once = *new std::function<void(std::function<void()>)>(
      [](const std::function<void()>& fn) { fn(); });
  return &at_once;
}

bool OpKernelContext::output_required(int i) const {
  if (own_ == nullptr || own_->params.output_required_array == nullptr) return true;
  return own_->params.output_required_array[i];
}

bool OpKernelContext::has_input(int i) const {
  if (!HasInput(i)) return false;
  return own_ == nullptr || own_->values[i].tensor != nullptr;
}

bool OpKernelContext::input_is_ref(int i) const {
  if (!HasInput(i)) return false;
  if (own_ != nullptr) return own_->values[i].is_ref();
  return IsRefType(kernel_->input_type(i));
}

mutex* OpKernelContext::input_ref_mutex(int i) {
  if (!HasInput(i)) return nullptr;
  if (own_ != nullptr) return own_->values[i].mutex_if_ref;
  // Each variable has one mutex, among the resources of the session.
  std::shared_ptr<RefMutex> found;
  const absl::StatusOr<std::shared_ptr<gradflow::Variable>> variable =
      gradflow::VariableOf(*context_, i);
  if (variable.ok() && context_->resource_manager() != nullptr) {
    absl::StatusOr<std::shared_ptr<RefMutex>> shared =
        context_->resource_manager()->LookupOrCreate<RefMutex>(
            absl::StrCat(gradflow::kReservedContainers, "_refs"),
            absl::StrCat(reinterpret_cast<uintptr_t>(variable->get())),
            [] { return std::make_shared<RefMutex>(); });
    if (shared.ok()) found = *std::move(shared);
  }
  if (found == nullptr) found = std::make_shared<RefMutex>();
  ref_mutexes_.push_back(found);
  return &found->mu;
}

absl::Status OpKernelContext::input_ref_mutex(absl::string_view name, mutex** out_mutex) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindInput(*kernel_, name, &i));
  *out_mutex = input_ref_mutex(i);
  return absl::OkStatus();
}

Tensor OpKernelContext::mutable_input(int i, bool lock_held) {
  if (!HasInput(i)) return NoTensor();
  if (own_ != nullptr) {
    const TensorValue& value = own_->values[i];
    if (value.tensor == nullptr) return NoTensor();
    if (value.mutex_if_ref == nullptr || lock_held) return *value.tensor;
    const tf_shared_lock lock(*value.mutex_if_ref);
    return *value.tensor;
  }
  const absl::StatusOr<std::shared_ptr<gradflow::Variable>> variable =
      gradflow::VariableOf(*context_, i);
  SetStatus(variable.status());
  if (!variable.ok() || !(*variable)->IsInitialized()) return NoTensor();
  gradflow::VariableUpdate update;
  absl::Status status = update.Begin(*context_, {i}, (*variable)->dtype());
  if (status.ok()) {
    // A second call returns the same tensor instead of a copy, because this kernel holds the first
    // one.
    for (const auto& [of, held] : mutable_values_) {
      if (of == variable->get() && update.value(0).SharesBufferWith(held)) return held;
    }
    // Existing readers keep the old value.
    status = update.MakeWritable();
  }
  SetStatus(status);
  if (!status.ok()) return NoTensor();
  mutable_values_.emplace_back(variable->get(), update.value(0));
  return update.value(0);
}

absl::Status OpKernelContext::mutable_input(absl::string_view name, Tensor* tensor,
                                            bool lock_held) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindInput(*kernel_, name, &i));
  *tensor = mutable_input(i, lock_held);
  return absl::OkStatus();
}

void OpKernelContext::replace_ref_input(int i, const Tensor& tensor, bool lock_held) {
  if (!HasInput(i)) return;
  if (own_ == nullptr) {
    const absl::StatusOr<std::shared_ptr<gradflow::Variable>> variable =
        gradflow::VariableOf(*context_, i);
    SetStatus(variable.status());
    if (variable.ok()) SetStatus((*variable)->Assign(tensor));
    return;
  }
  const TensorValue& value = own_->values[i];
  if (!value.is_ref() || value.tensor == nullptr) {
    SetStatus(errors::Internal("input ", i, " is not a reference"));
  } else if (lock_held) {
    *value.tensor = tensor;
  } else {
    const mutex_lock lock(*value.mutex_if_ref);
    *value.tensor = tensor;
  }
}

absl::Status OpKernelContext::replace_ref_input(absl::string_view name, const Tensor& tensor,
                                                bool lock_held) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindInput(*kernel_, name, &i));
  if (!input_is_ref(i)) {
    return errors::InvalidArgument("input '", name, "' is not a reference");
  }
  replace_ref_input(i, tensor, lock_held);
  return absl::OkStatus();
}

void OpKernelContext::delete_ref_input(int i, bool lock_held) {
  if (!HasInput(i)) return;
  if (own_ == nullptr || !own_->values[i].is_ref()) {
    SetStatus(errors::Internal("input ", i, " is not a tensor that the kernel may delete"));
    return;
  }
  TensorValue& value = own_->values[i];
  if (lock_held) {
    delete value.tensor;
  } else {
    const mutex_lock lock(*value.mutex_if_ref);
    delete value.tensor;
  }
  value.tensor = nullptr;
}

void OpKernelContext::forward_ref_input_to_ref_output(int input, int output) {
  SetStatus(CheckOutput(output));
  if (!HasInput(input) || !HasOutput(output)) return;
  context_->set_output(output,
                       own_ != nullptr ? mutable_input(input, false) : context_->input(input));
  is_set_[output] = true;
}

void OpKernelContext::set_output_ref(int i, mutex* mu, Tensor* tensor) {
  SetStatus(CheckOutput(i));
  if (!HasOutput(i)) return;
  if (own_ == nullptr) {
    SetStatus(errors::Unimplemented("output ", i,
                                    " is a reference to the kernel's own tensor; in a session, "
                                    "references are those of variables"));
    return;
  }
  const tf_shared_lock lock(*mu);
  context_->set_output(i, *tensor);
  is_set_[i] = true;
}

absl::Status OpKernelContext::set_output_ref(absl::string_view name, mutex* mu, Tensor* tensor) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindOutput(*kernel_, name, &i));
  set_output_ref(i, mu, tensor);
  return absl::OkStatus();
}

TensorValue OpKernelContext::release_output(int i) {
  SetStatus(CheckOutput(i));
  if (!HasOutput(i) || !is_set_[i]) return {};
  is_set_[i] = false;
  return TensorValue(new Tensor(std::move(*context_->mutable_output(i))));
}

void DeviceBase::CopyTensorInSameDevice(const Tensor* input, Tensor* output, const DeviceContext*,
                                        StatusCallback done) {
  absl::StatusOr<Tensor> copy = input->DeepCopy();
  if (copy.ok()) *output = *copy;
  done(copy.status());
}

const DeviceAttributes& DeviceBase::attributes() const {
  static const DeviceAttributes& attributes = *[] {
    auto* cpu = new DeviceAttributes;
    cpu->set_name("/device:CPU:0");
    cpu->set_device_type(DEVICE_CPU);
    return cpu;
  }();
  return attributes;
}

const std::string& DeviceBase::name() const { return DeviceBase::attributes().name(); }

}  // namespace tensorflow
