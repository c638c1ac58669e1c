// ConstantRunner: runs kernels on constants while a plan is made. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_CONSTANT_RUNNER_H_
#define GRADFLOW_RUNTIME_PLAN_CONSTANT_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {

// Charges the budget of a plan for the nodes that it computes, in units of about a nanosecond. Work
// counts nodes, bytes of inputs and outputs, and loop blocks. It is never timed, so a plan does not
// depend on the load of the machine. Computes on the calling thread.
class ConstantRunner {
 public:
  // Kernels may use at most `max_bytes` at once; `held_bytes` of them are in use.
  ConstantRunner(const PassContext& context, int64_t max_bytes, int64_t held_bytes = 0);

  // Computes the outputs of a node. Returns RESOURCE_EXHAUSTED if the node needs too much work or
  // memory. The status means nothing if is_stopped() returns true afterwards.
  absl::Status Run(const Node& node, const OpKernel& kernel, absl::Span<Tensor> inputs,
                   std::vector<Tensor>* outputs);

  // Returns true if the run that waits for the plan has ended.
  bool is_stopped() const { return stop_.cancelled() || stop_.closed(); }
  // Checks whether that run has ended.
  bool CheckStopped() { return stop_.Check(); }
  // Returns an error that names `node` and why it was stopped.
  absl::Status StopError(const PlanOrigin& node) const;

  int64_t work_left() const { return work_left_ + extra_work_; }
  // Allows the work and memory of a few passes over a constant of the graph. The work of planning
  // remains linear in the size of the graph if each constant is allowed once.
  void AllowConstant(int64_t bytes);

 private:
  void Charge(int64_t work);

  const RunLimits& limits_;
  int64_t max_bytes_;
  int64_t& work_left_;
  int64_t extra_work_ = 0;
  const std::shared_ptr<Allocator> allocator_;
  // Stops when the run that waits for the plan is cancelled.
  StopToken stop_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_CONSTANT_RUNNER_H_
