// FusedKernel: a convolution or product that applies the steps behind it to its result. Not for
// users.
//
// It holds the kernels of all its nodes. Where a run's shapes do not suit, or an input is not
// valid, it runs them one by one, with the results and errors of the nodes.
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
    // Null for the first.
    const StepKernel* step = nullptr;
    // The input that is the output of the node before it.
    int input = -1;
    int num_inputs = 0;
    // Index of its first other input among those of the fused node.
    int first_input = 0;
    DataTypeVector output_types;
  };

  FusedKernel(const FusibleKernel* head, std::vector<Link> links);
  absl::Status Compute(KernelContext& ctx) const override;
  // Head first. The inputs of the fused node are those of the head, followed by those of each step
  // without the output of the step before it.
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
