#include "gradflow/graph/node_kernel.h"

#include "absl/container/inlined_vector.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"

namespace gradflow::internal {

absl::StatusOr<std::unique_ptr<OpKernel>> MakeNodeKernel(const Node& node,
                                                         const KernelRegistration& registration,
                                                         const Tensor* constant) {
  absl::InlinedVector<DataType, 8> input_types(node.num_inputs());
  for (int i = 0; i < node.num_inputs(); ++i) {
    // A node that reads the value of a variable gets the value instead of a reference.
    input_types[i] = node.takes_reference(i) ? node.input_type(i) : BaseType(node.input_type(i));
  }
  const KernelConstruction construction(node.def(), node.op_def(), input_types, node.output_types(),
                                        constant);
  std::unique_ptr<OpKernel> kernel;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(kernel, registration.factory(construction));
    return absl::OkStatus();
  }));
  if (kernel == nullptr) return errors::Internal("the kernel factory returned null");
  return kernel;
}

absl::Status RunNodeKernel(const Node& node, const OpKernel& kernel, absl::Span<Tensor> inputs,
                           const RunContext& run, std::vector<Tensor>* outputs) {
  DataTypeVector types;
  for (const DataType dtype : node.output_types()) types.push_back(BaseType(dtype));
  outputs->assign(types.size(), Tensor(Tensor::Unset{}));
  KernelContext context(inputs, absl::MakeSpan(*outputs), types, run);
  GRADFLOW_RETURN_IF_ERROR(kernel.Compute(context));
  for (size_t i = 0; i < types.size(); ++i) {
    const Tensor& output = (*outputs)[i];
    if (output.dtype() != types[i] || !output.IsInitialized()) {
      return errors::Internal("output ", i, " is not as declared");
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
