// Symbolic gradients: adds ops that compute the gradients of output tensors with respect to input
// tensors, by reverse-mode differentiation.
//
//   std::vector<Output> gradients;
//   GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, {loss}, {weights, bias}, &gradients));
//   session.Run({gradients[0], gradients[1]}, &values);
//
// The gradient of an input x is the sum of grad_y * dy/dx over all outputs y. Gradient ops are
// named under "gradients/". Their definitions come from GradientRegistry::Global().
//
// Thread safety: as that of Scope.
#ifndef GRADFLOW_GRADIENTS_GRADIENTS_H_
#define GRADFLOW_GRADIENTS_GRADIENTS_H_

#include <vector>

#include "absl/status/status.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Options of AddSymbolicGradients.
struct GradientBuildOptions {
  // Colocates each op of the gradient with the op that it is the gradient of.
  bool colocate_gradients_with_ops = false;
  // Tensors that are treated as constants: backpropagation computes their gradients, but does not
  // continue through them. If `inputs` are listed here, the gradients are partial derivatives.
  std::vector<Output> stop_gradients;
  // Tensors that are kept for the backward pass. If not empty, the backward pass recomputes its
  // other forward tensors from these and the inputs, which takes less memory and more time. The
  // copies of forward nodes are named like gradient ops. Stateful nodes are not recomputed. The
  // values of gradients do not change.
  std::vector<Output> checkpoints;
  // Chooses checkpoints, so that a chain of n nodes keeps about the square root of n tensors.
  bool automatic_checkpoints = false;
  // Null for GradientRegistry::Global().
  const GradientRegistry* registry = nullptr;
  // Names the ops of the gradient as other ops of the scope, as TensorFlow's C++ API does, instead
  // of under "gradients/".
  bool plain_names = false;
  // Also differentiates integers, as if they were real numbers.
  bool of_integers = false;
  // Makes it an INVALID_ARGUMENT if no output depends on the node of an input.
  bool inputs_must_be_reached = false;
};

// A gradient that is zero except in some rows: row r is the sum of all values[i] with
// indices[i] = r.
struct IndexedSlices {
  // The rows. Their number is that of the indices.
  Output values;
  // A vector of the rows' indices, in any order. They may repeat.
  Output indices;
  // A vector of int32: the shape of the whole gradient.
  Output dense_shape;
};
// Returns the whole gradient.
Output ToDense(const Scope& scope, const IndexedSlices& slices);

// A gradient as a tensor, or as slices of it.
struct SparseGradient {
  // NoGradient() if there are slices, or no gradient.
  Output dense;
  // True if there are slices.
  bool is_sparse = false;
  // Empty outputs unless is_sparse.
  IndexedSlices slices;
};

// Adds the gradients of `inputs`, given those of `outputs` in `grad_inputs`, and stores them in
// *grad_outputs, one for each input: NoGradient() for an input that no output depends on. Takes
// time linear in the nodes between inputs and outputs.
//
// INVALID_ARGUMENT if the numbers of outputs and of their gradients differ, or their types;
// UNIMPLEMENTED, with the names of all such ops, if ops on the way have no registered gradient
// function; otherwise the first error of a gradient function, with the name of the node. On error
// *grad_outputs is unchanged, and the graph may have nodes of the gradient.
absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  const std::vector<Output>& grad_inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options = {});
// Overload with ones for the gradients of `outputs`.
absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options = {});

// Does what the first overload does, but returns slices, one row per index, for an input that only
// gathers read: Gather, GatherV2 along axis 0, or ResourceGather, directly or through Identity and
// ReadVariableOp.
absl::Status AddSparseSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                        const std::vector<Output>& inputs,
                                        const std::vector<Output>& grad_inputs,
                                        std::vector<SparseGradient>* grad_outputs,
                                        const GradientBuildOptions& options = {});

// Returns the output that stands for "no gradient", and tells whether an output is that.
Output NoGradient();
bool IsNoGradient(const Output& output);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRADIENTS_GRADIENTS_H_
