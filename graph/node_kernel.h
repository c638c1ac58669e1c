// Makes and runs the kernel of one node, outside of an executor. Internal.
#ifndef GRADFLOW_GRAPH_NODE_KERNEL_H_
#define GRADFLOW_GRAPH_NODE_KERNEL_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node.h"

namespace gradflow::internal {

// Makes a kernel of `registration` for the node. `constant` is passed to KernelConstruction.
absl::StatusOr<std::unique_ptr<OpKernel>> MakeNodeKernel(const Node& node,
                                                         const KernelRegistration& registration,
                                                         const Tensor* constant = nullptr);

// Computes the node on the calling thread. Returns INTERNAL if an output does not have the declared
// type.
absl::Status RunNodeKernel(const Node& node, const OpKernel& kernel, absl::Span<Tensor> inputs,
                           const RunContext& run, std::vector<Tensor>* outputs);

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_NODE_KERNEL_H_
