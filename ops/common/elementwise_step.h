// Elementwise loops as steps that are fused with the kernel before them (core/fused_steps.h).
#ifndef GRADFLOW_OPS_COMMON_ELEMENTWISE_STEP_H_
#define GRADFLOW_OPS_COMMON_ELEMENTWISE_STEP_H_

#include <memory>

#include "absl/types/span.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow {

// Returns a step that runs a loop of floats on `inputs`, of which inputs[input] is a result of
// shape `shape`. With kBroadcast, another input has that shape, one element for each column, or one
// element. Returns null for other forms.
std::unique_ptr<FusedStep> MakeElementwiseStep(ElementwiseLoop loop,
                                               absl::Span<const Tensor> inputs, int input,
                                               const TensorShape& shape, Pairing pairing);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTWISE_STEP_H_
