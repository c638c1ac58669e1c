// Helpers of gradient functions. Not for users.
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

// A scalar constant of a type of numbers.
Output Scalar(const Scope& scope, DataType dtype, double value);
// A vector of int32.
Output Vector(const Scope& scope, const std::vector<int32_t>& values);
// conj(x) for complex numbers, x for real ones.
Output Conjugate(const Scope& scope, const Output& x);
// The real part of x, in the type of x.
Output RealPart(const Scope& scope, const Output& x);
// The type of the parts of complex numbers.
DataType PartType(DataType complex);

// Sums `gradient` over the dimensions along which `x` was broadcast with `other`, so that it has
// the shape of x. `gradient` has the broadcast shape. Adds no nodes if the shapes that are known
// when the graph is built say that there is none.
Output SumToShapeOf(const Scope& scope, const Output& gradient, const Output& x,
                    const Output& other);
// Appends the gradients of the two inputs of a broadcasting operation, before their sums.
absl::Status Broadcast(const Scope& scope, const Operation& op, const Output& gradient_x,
                       const Output& gradient_y, std::vector<Output>* dx);

// Returns gradient `dy` of output `i`, or zeros of its shape if there is none.
Output OrZeros(const Scope& scope, const Operation& op, int i, const std::vector<Output>& dy);

// The gradient of a tensor of `shape` whose rows `indices` of dimension 0 were gathered: the sums
// of the rows of `dy`. In selection.cc.
Output SumRows(const Scope& scope, const Output& dy, const Output& indices, const Output& shape);
// Handles a gather along `axis` with `batch_dims`, both scalars of int32 that are not
// negative.
Output GatherBatchesGradient(const Scope& scope, const Output& shape, const Output& indices,
                             const Output& axis, const Output& batch_dims, const Output& dy);
// The attribute batch_dims, plus the rank of `indices` if negative.
Output BatchDims(const Scope& scope, int64_t batch_dims, const Output& indices);

// The gradient of an input for which the derivative is not known: no gradient, but an error if the
// input depends on an input of the gradient.
Output UnknownGradient();
bool IsUnknownGradient(const Output& output);

// Reads an attribute of the operation's node.
template <typename T>
absl::Status GetAttr(const Operation& op, absl::string_view name, T* value) {
  return op.node()->GetAttr(name, value);
}

// Returns functions of tensors.
using Formula =
    std::function<std::vector<Output>(const Scope& scope, const std::vector<Output>& xs)>;
// Appends to *dx the gradients of `inputs`, one for each, where `formula` computes the outputs of
// an op from them, and dys are the gradients of those: for ops whose gradient is that of a formula
// of differentiable ops. The gradients are partial derivatives: what the inputs depend on, and
// whether they are equal, does not matter.
absl::Status DifferentiateFormula(const Scope& scope, const std::vector<Output>& inputs,
                                  const Formula& formula, const std::vector<Output>& dys,
                                  std::vector<Output>* dx);

// AddSymbolicGradients() that adds to `scope` itself, and so searches no unused names.
absl::StatusOr<std::vector<Output>> AddGradientsIn(const Scope& scope,
                                                   const std::vector<Output>& outputs,
                                                   const std::vector<Output>& inputs,
                                                   const std::vector<Output>& grad_inputs,
                                                   const GradientBuildOptions& options);

// Appends NoGradient() until there is one element for each input.
absl::Status NoGradientForTheRest(const Scope& scope, const Operation& op, std::vector<Output>* dx);

}  // namespace gradflow::gradients

#endif  // GRADFLOW_GRADIENTS_GRADIENT_HELPERS_H_
