// Derivatives computed from gradients: Jacobians, and products of Jacobians and Hessians with
// vectors.
//
//   std::vector<Output> products;
//   GRADFLOW_RETURN_IF_ERROR(
//       HessianVectorProduct(scope, loss, {weights}, {direction}, &products));
//
// Thread safety: the same as Scope.
#ifndef GRADFLOW_GRADIENTS_DERIVATIVES_H_
#define GRADFLOW_GRADIENTS_DERIVATIVES_H_

#include <vector>

#include "absl/status/status.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Adds the derivatives of all elements of `y` with respect to all elements of `x`. Stores in
// *jacobian a tensor whose shape is the shape of y followed by the shape of x, or NoGradient() if y
// does not depend on x.
//
// Adds a backward pass for each element of y. Returns INVALID_ARGUMENT if the shape of y is not
// known when the graph is built, or if y has more than 65,536 elements.
absl::Status Jacobian(const Scope& scope, const Output& y, const Output& x, Output* jacobian,
                      const GradientBuildOptions& options = {});

// Adds the product of the Jacobian of `ys` with `vs`, which holds a tensor for each x. Stores a
// tensor for each y in *products: the directional derivative of y along the vs, or NoGradient() if
// y does not depend on the xs. This is forward mode, computed by two backward passes: the gradients
// of the xs are linear in the gradients of the ys, so the second pass differentiates the gradients
// of the xs with respect to the gradients of the ys.
absl::Status JacobianVectorProduct(const Scope& scope, const std::vector<Output>& ys,
                                   const std::vector<Output>& xs, const std::vector<Output>& vs,
                                   std::vector<Output>* products,
                                   const GradientBuildOptions& options = {});

// Adds the product of a Hessian with `vs`, which holds a tensor for each x. The Hessian contains
// the second derivatives of the sum of the elements of `loss`. Stores a tensor for each x in
// *products: the directional derivative of the gradient of x along the vs, or NoGradient() if no
// gradient depends on x. Takes about twice the time of a gradient.
absl::Status HessianVectorProduct(const Scope& scope, const Output& loss,
                                  const std::vector<Output>& xs, const std::vector<Output>& vs,
                                  std::vector<Output>* products,
                                  const GradientBuildOptions& options = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRADIENTS_DERIVATIVES_H_
