// Elementwise loops as steps that are fused with the preceding kernel (core/fused_steps.h).
#ifndef GRADFLOW_OPS_COMMON_ELEMENTWISE_STEP_H_
#define GRADFLOW_OPS_COMMON_ELEMENTWISE_STEP_H_

#include <memory>

#include "absl/types/span.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow {

// Returns a step that runs a float loop on `inputs`. inputs[input] stands for the result, which has
// shape `shape`. Each other input has the shape `shape` or, with kBroadcast, one element per column
// or one element. Returns null for inputs of other shapes or types.
std::unique_ptr<FusedStep> MakeElementwiseStep(ElementwiseLoop loop,
                                               absl::Span<const Tensor> inputs, int input,
                                               const TensorShape& shape, Pairing pairing);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTWISE_STEP_H_
