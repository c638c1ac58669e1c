// Derivatives that are made of gradients: Jacobians, and products of Jacobians and Hessians with
// vectors.
//
//   std::vector<Output> products;
//   GRADFLOW_RETURN_IF_ERROR(
//       HessianVectorProduct(scope, loss, {weights}, {direction}, &products));
//
// Thread safety: as that of Scope.
#ifndef GRADFLOW_GRADIENTS_DERIVATIVES_H_
#define GRADFLOW_GRADIENTS_DERIVATIVES_H_

#include <vector>

#include "absl/status/status.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Adds the derivatives of all elements of `y` by all elements of `x`, and stores them in *jacobian:
// a tensor of the shape of y followed by that of x, or NoGradient() if y does not depend on x.
//
// The shape of y must be known when the graph is built, and y have at most 65,536 elements: a
// backward pass is added for each of them.
absl::Status Jacobian(const Scope& scope, const Output& y, const Output& x, Output* jacobian,
                      const GradientBuildOptions& options = {});

// Adds the product of the Jacobian of `ys` with `vs`, which has a tensor for each x, and stores a
// tensor for each y in *products: the directional derivative of y along the vs, or NoGradient() if
// y does not depend on the xs. Forward mode: differentiates the gradients, which are linear in the
// gradients of the outputs, with respect to these.
absl::Status JacobianVectorProduct(const Scope& scope, const std::vector<Output>& ys,
                                   const std::vector<Output>& xs, const std::vector<Output>& vs,
                                   std::vector<Output>* products,
                                   const GradientBuildOptions& options = {});

// Adds the product of the Hessian of the sum of the elements of `loss` with `vs`, which has a
// tensor for each x, and stores a tensor for each x in *products: the directional derivative of the
// gradient of x along the vs, or NoGradient() if no gradient depends on x. Takes about twice as
// long as a gradient.
absl::Status HessianVectorProduct(const Scope& scope, const Output& loss,
                                  const std::vector<Output>& xs, const std::vector<Output>& vs,
                                  std::vector<Output>* products,
                                  const GradientBuildOptions& options = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRADIENTS_DERIVATIVES_H_
