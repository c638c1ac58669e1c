#include "gradflow/runtime/kernel_cache.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/call_safely.h"

namespace gradflow {
namespace {

absl::StatusOr<std::unique_ptr<OpKernel>> MakeKernelFor(const Node& node) {
  GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const registration,
                            node.graph().registry().FindKernel(node.def()));
  absl::InlinedVector<DataType, 8> input_types(node.num_inputs());
  for (int i = 0; i < node.num_inputs(); ++i) input_types[i] = node.input_type(i);
  const KernelConstruction construction(node.def(), node.op_def(), input_types,
                                        node.output_types());
  std::unique_ptr<OpKernel> kernel;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(kernel, registration->factory(construction));
    return absl::OkStatus();
  }));
  if (kernel == nullptr) return errors::Internal("the factory of the kernel made none");
  return kernel;
}

}  // namespace

absl::StatusOr<const OpKernel*> KernelCache::Get(const Node& node) {
  const size_t id = node.id();
  if (id >= kernels_.size()) {
    kernels_.resize(std::max<size_t>(id + 1, node.graph().num_nodes()));
  }
  if (kernels_[id] == nullptr) {
    absl::StatusOr<std::unique_ptr<OpKernel>> kernel = MakeKernelFor(node);
    if (!kernel.ok()) return errors::Prefix(internal::NodePrefix(node.def()), kernel.status());
    kernels_[id] = *std::move(kernel);
  }
  return kernels_[id].get();
}

}  // namespace gradflow
