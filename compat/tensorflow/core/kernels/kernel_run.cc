#include "tensorflow/core/kernels/kernel_run.h"

#include <utility>

#include "absl/types/span.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace tensorflow {
namespace compat_internal {

absl::Status KernelRun::Init(gradflow::NodeDef* node) {
  // A previous kernel does not match the types of the new node.
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

absl::Status KernelRun::Run(const std::deque<gradflow::Tensor>& inputs) {
  outputs_.clear();
  if (kernel_ == nullptr) {
    return gradflow::errors::FailedPrecondition("there is no kernel: InitOp() has not succeeded");
  }
  if (inputs.size() != input_types_.size()) {
    return gradflow::errors::InvalidArgument("the kernel has ", input_types_.size(),
                                             " inputs, but ", inputs.size(), " are given");
  }
  std::vector<gradflow::Tensor> handles(inputs.begin(), inputs.end());
  std::vector<gradflow::Tensor> outputs(output_types_.size());
  const gradflow::RunContext run;
  gradflow::KernelContext context(absl::MakeSpan(handles), absl::MakeSpan(outputs), output_types_,
                                  run);
  GRADFLOW_RETURN_IF_ERROR(kernel_->Compute(context));
  outputs_ = std::move(outputs);
  return absl::OkStatus();
}

}  // namespace compat_internal
}  // namespace tensorflow
