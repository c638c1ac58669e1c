// Helpers for gradient functions. Internal.
#ifndef GRADFLOW_GRADIENTS_GRADIENT_HELPERS_H_
#define GRADFLOW_GRADIENTS_GRADIENT_HELPERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/status.h"
#include "gradflow/core/types.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"

namespace gradflow::gradients {

// A scalar constant of a numeric type.
Output Scalar(const Scope& scope, DataType dtype, double value);
// An int32 vector.
Output Vector(const Scope& scope, const std::vector<int32_t>& values);
// conj(x) if x is complex, otherwise x.
Output Conjugate(const Scope& scope, const Output& x);
// The real part of x, in the type of x.
Output RealPart(const Scope& scope, const Output& x);
// The type of the real and imaginary parts of a complex type.
DataType PartType(DataType complex);

// Sums `gradient`, which has the broadcast shape of `x` and `other`, over the dimensions along
// which `x` was broadcast. The result has the shape of x. Adds no nodes if the shapes that are
// known when the graph is built show that x was not broadcast.
Output SumToShapeOf(const Scope& scope, const Output& gradient, const Output& x,
                    const Output& other);
// Appends the gradients of both inputs of a broadcasting operation. `gradient_x` and `gradient_y`
// have the broadcast shape; they are summed to the shapes of the inputs.
absl::Status Broadcast(const Scope& scope, const Operation& op, const Output& gradient_x,
                       const Output& gradient_y, std::vector<Output>* dx);

// Returns gradient `dy` of output `i`, or zeros of the output's shape if there is no gradient.
Output OrZeros(const Scope& scope, const Operation& op, int i, const std::vector<Output>& dy);

// The gradient of a tensor of `shape` whose rows `indices` of dimension 0 were gathered: the rows
// of `dy`, summed by index. Defined in selection.cc.
Output SumRows(const Scope& scope, const Output& dy, const Output& indices, const Output& shape);
// Like SumRows(), but for a gather along `axis` with `batch_dims`. Both are nonnegative int32
// scalars.
Output GatherBatchesGradient(const Scope& scope, const Output& shape, const Output& indices,
                             const Output& axis, const Output& batch_dims, const Output& dy);
// The attribute batch_dims as an int32 scalar. If negative, the rank of `indices` is added.
Output BatchDims(const Scope& scope, int64_t batch_dims, const Output& indices);

// The gradient of an input whose derivative is not known. Counts as NoGradient(), but is an
// UNIMPLEMENTED error if the input depends on an input of the gradient.
Output UnknownGradient();
bool IsUnknownGradient(const Output& output);

// Reads an attribute of the operation's node.
template <typename T>
absl::Status GetAttr(const Operation& op, absl::string_view name, T* value) {
  return op.node()->GetAttr(name, value);
}

// Returns the outputs of an op as a formula of its inputs, made of differentiable ops.
using Formula =
    std::function<std::vector<Output>(const Scope& scope, const std::vector<Output>& xs)>;
// Appends to *dx a gradient for each of `inputs`. `formula` computes the outputs of an op from the
// inputs, and `dys` are the gradients of these outputs. The gradients are partial derivatives: it
// does not matter what the inputs depend on, or whether inputs are the same tensor.
absl::Status DifferentiateFormula(const Scope& scope, const std::vector<Output>& inputs,
                                  const Formula& formula, const std::vector<Output>& dys,
                                  std::vector<Output>* dx);

// Like AddSymbolicGradients(), but adds to `scope` itself, and so needs no search for an unused
// name.
absl::StatusOr<std::vector<Output>> AddGradientsIn(const Scope& scope,
                                                   const std::vector<Output>& outputs,
                                                   const std::vector<Output>& inputs,
                                                   const std::vector<Output>& grad_inputs,
                                                   const GradientBuildOptions& options);

// Appends NoGradient() until `dx` has an element for each input.
absl::Status NoGradientForTheRest(const Scope& scope, const Operation& op, std::vector<Output>* dx);

}  // namespace gradflow::gradients

#endif  // GRADFLOW_GRADIENTS_GRADIENT_HELPERS_H_
