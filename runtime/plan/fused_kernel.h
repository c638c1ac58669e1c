// FusedKernel: a convolution or matrix product that applies the elementwise steps after it to its
// result. Internal.
//
// Holds the kernels of all nodes that it replaces. If a run's shapes are not supported or an input
// is invalid, it runs these kernels one by one, with the same results and errors as without fusion.
#ifndef GRADFLOW_RUNTIME_PLAN_FUSED_KERNEL_H_
#define GRADFLOW_RUNTIME_PLAN_FUSED_KERNEL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

class FusedKernel final : public OpKernel {
 public:
  // A node of the chain.
  struct Link {
    const OpKernel* kernel = nullptr;
    // Keeps a kernel that another pass has made; otherwise null.
    std::shared_ptr<const OpKernel> owner;
    // Null for the head.
    const StepKernel* step = nullptr;
    // The input that takes the previous node's output.
    int input = -1;
    int num_inputs = 0;
    // The index, among the inputs of the fused node, of this node's first input that is not the
    // previous node's output.
    int first_input = 0;
    DataTypeVector output_types;
  };

  FusedKernel(const FusibleKernel* head, std::vector<Link> links);
  absl::Status Compute(KernelContext& ctx) const override;
  // Returns the links, head first. The fused node has the inputs of the head, followed by the
  // inputs of each step except the previous node's output.
  absl::Span<const Link> links() const { return links_; }

 private:
  class Steps;
  absl::Status ComputeOneByOne(KernelContext& ctx) const;

  const FusibleKernel* const head_;
  std::vector<Link> links_;
  // The number of inputs of all links except the head.
  size_t num_step_inputs_ = 0;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_FUSED_KERNEL_H_
