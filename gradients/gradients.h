// Symbolic gradients: adds ops that compute the gradients of output tensors with respect to input
// tensors, by reverse-mode differentiation.
//
//   std::vector<Output> gradients;
//   GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, {loss}, {weights, bias}, &gradients));
//   session.Run({gradients[0], gradients[1]}, &values);
//
// The gradient of an input x is the sum of grad_y * dy/dx over all outputs y. Gradient ops are
// named under "gradients/". Their gradient functions come from GradientRegistry::Global().
//
// Thread safety: the same as Scope.
#ifndef GRADFLOW_GRADIENTS_GRADIENTS_H_
#define GRADFLOW_GRADIENTS_GRADIENTS_H_

#include <vector>

#include "absl/status/status.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

class GraphDef;

// Options of AddSymbolicGradients.
struct GradientBuildOptions {
  // Colocates each gradient op with its forward op.
  bool colocate_gradients_with_ops = false;
  // Tensors that are treated as constants: backpropagation computes their gradients, but does not
  // continue through them. If `inputs` are listed here, the gradients are partial derivatives.
  std::vector<Output> stop_gradients;
  // Tensors that are kept for the backward pass. If not empty, the backward pass recomputes all
  // other forward tensors from these and the inputs. This takes less memory and more time. The
  // copies of forward nodes are named under "gradients/recomputed/". Stateful nodes and nodes of
  // loops and branches are not recomputed. The values of the gradients do not change.
  std::vector<Output> checkpoints;
  // Chooses further checkpoints automatically: a chain of n nodes keeps about the square root of n
  // tensors.
  bool automatic_checkpoints = false;
  // Null for GradientRegistry::Global().
  const GradientRegistry* registry = nullptr;
  // Names gradient ops like other ops of the scope instead of under "gradients/", as TensorFlow's
  // C++ API does.
  bool plain_names = false;
  // Also differentiates integers, as if they were real numbers.
  bool of_integers = false;
  // If true, returns INVALID_ARGUMENT if no output depends on the node of an input.
  bool inputs_must_be_reached = false;
};

// A gradient that is zero except in some rows: row r is the sum of all values[i] with indices[i] =
// r.
struct IndexedSlices {
  // The rows, one for each index.
  Output values;
  // A vector of row indices, in any order. Indices may repeat.
  Output indices;
  // The shape of the whole gradient, an int32 vector.
  Output dense_shape;
};
// Returns the gradient as a dense tensor.
Output ToDense(const Scope& scope, const IndexedSlices& slices);

// A gradient, as a tensor or as slices.
struct SparseGradient {
  // NoGradient() if the gradient is slices or does not exist.
  Output dense;
  // True if the gradient is slices.
  bool is_sparse = false;
  // Empty outputs unless is_sparse.
  IndexedSlices slices;
};

// Adds the gradients of `inputs`, given the gradients of `outputs` in `grad_inputs`. An element of
// `grad_inputs` may be NoGradient(), which means zero. Stores one gradient for each input in
// *grad_outputs: NoGradient() if no output depends on the input, or only through ops without a
// derivative. Takes time linear in the number of nodes between inputs and outputs.
//
// Returns INVALID_ARGUMENT if the outputs and their gradients differ in number or type, or if a
// tensor is not in the scope's graph. Returns UNIMPLEMENTED, with the names of all such ops, if ops
// between inputs and outputs have no registered gradient function. Otherwise returns the first
// error of a gradient function, with the name of the node. On error, *grad_outputs is unchanged,
// and the graph may contain nodes of the gradient.
absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  const std::vector<Output>& grad_inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options = {});
// Overload for gradients of ones for `outputs`.
absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options = {});

// Like the first overload, but returns slices, one row per index, for an input that only gathers
// read, directly or through Identity and ReadVariableOp. A gather is a Gather, a GatherV2 along a
// constant axis 0, or a ResourceGather; its batch_dims must be 0.
absl::Status AddSparseSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                        const std::vector<Output>& inputs,
                                        const std::vector<Output>& grad_inputs,
                                        std::vector<SparseGradient>* grad_outputs,
                                        const GradientBuildOptions& options = {});

// Replaces the SymbolicGradient nodes of a GraphDef and of its functions by calls of new functions
// that compute the gradients. A session cannot run SymbolicGradient itself. Functions must not
// contain SymbolicGradient nodes if another SymbolicGradient differentiates them. Returns the
// errors of AddSymbolicGradients(), with the name of the node. On error the GraphDef is unchanged.
absl::Status ExpandSymbolicGradients(GraphDef* graph);

// Returns the output that stands for "no gradient". IsNoGradient() recognizes it.
Output NoGradient();
bool IsNoGradient(const Output& output);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRADIENTS_GRADIENTS_H_
