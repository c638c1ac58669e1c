// Derivatives that are made of gradients: Jacobians, and products of Jacobians and Hessians with
// vectors.
//
//   std::vector<Output> products;
//   TF_CHECK_OK(HessianVectorProduct(scope, loss, {weights}, {direction}, &products));
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

// Adds the products of the Jacobian of `ys` with `vs`, one for each x, and stores one for each y:
// the derivatives of the ys if the xs move by the vs. It is forward mode, by differentiating
// gradients by the gradients of the outputs that they are linear in. NoGradient() for a y that does
// not depend on the xs.
absl::Status JacobianVectorProduct(const Scope& scope, const std::vector<Output>& ys,
                                   const std::vector<Output>& xs, const std::vector<Output>& vs,
                                   std::vector<Output>* products,
                                   const GradientBuildOptions& options = {});

// Adds the products of the Hessian of the sum of the elements of `loss` with `vs`, one for each x,
// and stores one for each x: the derivatives of the gradients if the xs move by the vs. Takes about
// twice as long as a gradient. NoGradient() for an x of which no gradient depends.
absl::Status HessianVectorProduct(const Scope& scope, const Output& loss,
                                  const std::vector<Output>& xs, const std::vector<Output>& vs,
                                  std::vector<Output>* products,
                                  const GradientBuildOptions& options = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRADIENTS_DERIVATIVES_H_
