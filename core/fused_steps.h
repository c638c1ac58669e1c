// Fusing: a kernel applies the steps that follow it to each part of its result while the part is in
// a cache. A plan pass (runtime/plan/fusing.cc) finds such nodes. Internal.
//
// A result is a float matrix whose columns are the last dimension of its shape. A step computes
// each element from the same element of the result and the corresponding elements of its other
// inputs. Its results are bitwise equal to the results of the node's kernel.
#ifndef GRADFLOW_CORE_FUSED_STEPS_H_
#define GRADFLOW_CORE_FUSED_STEPS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

#pragma GCC visibility push(default)
namespace gradflow {

// A block of a result that begins at row `row` and column `column`.
struct ResultPart {
  float* data;
  // The distance between rows in `data`, in elements.
  int64_t stride;
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
};

// A step of one run. Borrows the inputs that it was made from. Thread-safe.
class FusedStep {
 public:
  virtual ~FusedStep() = default;
  // Sets the elements of a part in place.
  virtual void Apply(const ResultPart& part) const = 0;
};

// Steps that a kernel can compute itself: kBias adds a vector to each row, kAdd adds another
// tensor.
enum class StepOp { kOther, kBias, kAdd, kRelu, kRelu6 };

// A kernel that can be a step.
class StepKernel {
 public:
  virtual ~StepKernel() = default;
  // Returns the operation if other kernels can compute it, otherwise kOther.
  virtual StepOp step_op() const { return StepOp::kOther; }
  // Returns true if MakeStep() may make a step on input `input`.
  virtual bool CanBeStep(int input) const = 0;
  // Makes the step that computes output 0 from input `input`, a result of shape `shape`.
  // inputs[input] is unset. Returns null if the output would have another shape or the other inputs
  // are not supported.
  virtual std::unique_ptr<FusedStep> MakeStep(const RunContext& run,
                                              absl::Span<const Tensor> inputs, int input,
                                              const TensorShape& shape) const = 0;
};

// The steps of one run, in order.
class FusedSteps {
 public:
  virtual ~FusedSteps() = default;
  // Makes the steps for a result of shape `shape`. Returns false if they cannot be applied.
  virtual bool Prepare(const TensorShape& shape) = 0;
  // Applies the steps to a part. Thread-safe. REQUIRES: Prepare() has returned true
  virtual void Apply(const ResultPart& part) const = 0;
};

// Applies the steps to a whole result, in parallel.
void ApplyToAll(const RunContext& run, const FusedSteps& steps, Tensor* result);

// A kernel that can apply steps to its result, output 0.
class FusibleKernel {
 public:
  virtual ~FusibleKernel() = default;
  // Returns true if ComputeFused() may compute the node.
  virtual bool CanBeFused() const = 0;
  // Computes the node and applies the steps. If the inputs are invalid or not supported, sets *done
  // to false and has no other effect; the node is then computed without fusing.
  virtual absl::Status ComputeFused(KernelContext& ctx, FusedSteps* steps, bool* done) const = 0;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_FUSED_STEPS_H_
