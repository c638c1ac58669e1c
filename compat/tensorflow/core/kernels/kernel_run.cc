#include "tensorflow/core/kernels/kernel_run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/io/file_access.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace compat_internal {

absl::Status KernelRun::Init(gradflow::NodeDef* node) {
  // Drops the previous kernel, which does not match the types of the new node.
  kernel_ = nullptr;
  outputs_.clear();
  const gradflow::Registry& registry = gradflow::GlobalRegistry();
  GRADFLOW_ASSIGN_OR_RETURN(const gradflow::OpRegistration* op, registry.LookUpOp(node->op()));
  gradflow::AddDefaultsToNodeDef(op->def(), node);
  GRADFLOW_RETURN_IF_ERROR(gradflow::ValidateNodeDef(*node, op->def()));
  GRADFLOW_RETURN_IF_ERROR(
      gradflow::InOutTypesForNode(*node, op->def(), &input_types_, &output_types_));
  GRADFLOW_ASSIGN_OR_RETURN(const gradflow::KernelRegistration* kernel, registry.FindKernel(*node));
  GRADFLOW_ASSIGN_OR_RETURN(kernel_, kernel->factory(gradflow::KernelConstruction(
                                         *node, op->def(), input_types_, output_types_)));
  return absl::OkStatus();
}

gradflow::DataType KernelRun::input_type(size_t i) const {
  return i < input_types_.size() ? input_types_[i] : gradflow::DT_INVALID;
}

ResourceMgr* KernelRun::resources() {
  // OpKernelContext::resource_manager() looks up the same resource.
  const absl::StatusOr<std::shared_ptr<ResourceMgr>> found =
      manager_.LookupOrCreate<ResourceMgr>(gradflow::kReservedContainers, "resource_mgr",
                                           [] { return std::make_shared<ResourceMgr>(); });
  if (!found.ok()) LOG(FATAL) << found.status();
  return found->get();
}

absl::Status KernelRun::Run(absl::Span<gradflow::Tensor* const> inputs) {
  outputs_.clear();
  if (kernel_ == nullptr) {
    return gradflow::errors::FailedPrecondition("there is no kernel: InitOp() has not succeeded");
  }
  if (inputs.size() != input_types_.size()) {
    return gradflow::errors::InvalidArgument("the kernel has ", input_types_.size(),
                                             " inputs, but ", inputs.size(), " are given");
  }
  std::vector<gradflow::Tensor> handles;
  for (const gradflow::Tensor* input : inputs) handles.push_back(*input);
  gradflow::DataTypeVector output_types = output_types_;
  std::vector<gradflow::Tensor> outputs(output_types.size());
  std::vector<std::shared_ptr<gradflow::Variable>> variables(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!gradflow::IsRefType(input_types_[i])) continue;
    const std::string name = absl::StrCat("input", i);
    variables[i] = std::make_shared<gradflow::Variable>(
        handles[i].dtype(), gradflow::PartialTensorShape(handles[i].shape()), name);
    // The caller's tensor keeps its elements until the kernel has succeeded.
    GRADFLOW_ASSIGN_OR_RETURN(gradflow::Tensor value, handles[i].DeepCopy());
    GRADFLOW_RETURN_IF_ERROR(variables[i]->Assign(std::move(value)));
    handles[i] = gradflow::Tensor(gradflow::ResourceHandle(variables[i], name));
  }
  for (gradflow::DataType& dtype : output_types) dtype = gradflow::TypeOfSlot(dtype);
  gradflow::RunContext run;
  run.resources = &manager_;
  run.files = &gradflow::FileAccess::All();
  gradflow::KernelContext context(absl::MakeSpan(handles), absl::MakeSpan(outputs), output_types,
                                  run);
  GRADFLOW_RETURN_IF_ERROR(kernel_->Compute(context));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (variables[i] == nullptr || !variables[i]->IsInitialized()) continue;
    GRADFLOW_ASSIGN_OR_RETURN(*inputs[i], variables[i]->Read());
  }
  for (const int i : context.dead_outputs()) {
    outputs[static_cast<size_t>(i)] = gradflow::Tensor(gradflow::Tensor::Unset());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!gradflow::IsRefType(output_types_[i]) || outputs[i].dtype() == gradflow::DT_INVALID) {
      continue;
    }
    GRADFLOW_ASSIGN_OR_RETURN(outputs[i], gradflow::ReadReference(outputs[i]));
  }
  outputs_ = std::move(outputs);
  return absl::OkStatus();
}

}  // namespace compat_internal
}  // namespace tensorflow
